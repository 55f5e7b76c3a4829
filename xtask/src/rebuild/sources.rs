//! The two crates that are compared.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

pub(crate) const HANDLERS: usize = 100;

/// Writes both, as a workspace of their own.
pub(crate) fn write(directory: &Path, mqguard: &Path) -> anyhow::Result<()> {
    file(&directory.join("Cargo.toml"), "[workspace]\nresolver = \"3\"\nmembers = [\"guarded\", \"by_hand\"]\n")?;
    // The same versions as the project's.
    std::fs::copy(mqguard.join("Cargo.lock"), directory.join("Cargo.lock")).context("Cargo.lock")?;
    let shared = "serde = { version = \"1\", features = [\"derive\"] }\nthiserror = \"2\"\ntokio = { version = \"1\", features = [\"full\"] }\n";
    let own = format!("mqguard = {{ path = {:?} }}\n", mqguard.display().to_string());
    package(directory, "guarded", &format!("{own}{shared}"))?;
    let own = "futures-util = \"0.3\"\nlapin = { version = \"4.12.3\", default-features = false, features = [\"tokio\"] }\nserde_json = \"1\"\n";
    package(directory, "by_hand", &format!("{own}{shared}"))?;
    for n in 0..HANDLERS {
        handler(directory, "guarded", n, GUARDED, 0)?;
        handler(directory, "by_hand", n, BY_HAND, 0)?;
    }
    let mut guarded = modules();
    guarded
        .push_str("\n#[tokio::main]\nasync fn main() -> mqguard::Result<()> {\n    let guard = mqguard::Guard::from_env()?;\n");
    for n in 0..HANDLERS {
        writeln!(guarded, "    let guard = guard.consumer::<handler_{n}::handle>();")?;
    }
    guarded.push_str("    guard.run().await\n}\n");
    file(&directory.join("guarded/src/main.rs"), &guarded)?;
    let mut by_hand = modules();
    by_hand.push_str("mod worker;\n");
    by_hand.push_str(MAIN_BY_HAND);
    for n in 0..HANDLERS {
        writeln!(
            by_hand,
            "    tokio::spawn(worker::consume(connection.create_channel().await?, \"queue.{n}\", handler_{n}::handle));"
        )?;
    }
    by_hand.push_str("    std::future::pending().await\n}\n");
    file(&directory.join("by_hand/src/main.rs"), &by_hand)?;
    file(&directory.join("by_hand/src/worker.rs"), WORKER)
}

/// Changes the body of a handler.
pub(crate) fn touch(directory: &Path, name: &str, n: usize, round: usize) -> anyhow::Result<()> {
    handler(directory, name, n, if name == "guarded" { GUARDED } else { BY_HAND }, round + 1)
}

fn handler(directory: &Path, name: &str, n: usize, text: &str, version: usize) -> anyhow::Result<()> {
    let text = text.replace("NUMBER", &n.to_string()).replace("VERSION", &version.to_string());
    file(&directory.join(name).join(format!("src/handler_{n}.rs")), &text)
}

fn modules() -> String {
    (0..HANDLERS).fold(String::new(), |text, n| text + &format!("mod handler_{n};\n"))
}

fn package(directory: &Path, name: &str, dependencies: &str) -> anyhow::Result<()> {
    let manifest =
        format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}");
    file(&directory.join(name).join("Cargo.toml"), &manifest)
}

/// Writes what is not there yet: an unchanged file stays as old as it is.
fn file(path: &Path, text: &str) -> anyhow::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let parent = path.parent().context("a file in a directory")?;
    std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

const GUARDED: &str = r#"use mqguard::{RetryableError, consumer};

#[derive(Debug, serde::Deserialize)]
pub struct Order {
    order_id: u64,
    sku: String,
    quantity: u32,
}

#[derive(Debug, thiserror::Error, RetryableError)]
pub enum OrderError {
    #[error("inventory unreachable")]
    #[retryable]
    Inventory(#[from] std::io::Error),
    #[error("order {0} already shipped")]
    #[fatal]
    AlreadyShipped(u64),
}

#[consumer(queue = "queue.NUMBER", retry(max = 3, delay = "5s", factor = 2), dlq = "dlq.queue.NUMBER", idempotent = "memory")]
pub async fn handle(order: Order) -> Result<(), OrderError> {
    tokio::fs::write("/dev/null", format!("VERSION {} {}", order.sku, order.quantity)).await?;
    if order.order_id == 0 { Err(OrderError::AlreadyShipped(order.order_id)) } else { Ok(()) }
}
"#;

const BY_HAND: &str = r#"#[derive(Debug, serde::Deserialize)]
pub struct Order {
    order_id: u64,
    sku: String,
    quantity: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    #[error("inventory unreachable")]
    Inventory(#[from] std::io::Error),
    #[error("order {0} already shipped")]
    AlreadyShipped(u64),
}

impl crate::worker::Retryable for OrderError {
    fn is_retryable(&self) -> bool {
        matches!(self, Self::Inventory(_))
    }
}

pub async fn handle(order: Order) -> Result<(), OrderError> {
    tokio::fs::write("/dev/null", format!("VERSION {} {}", order.sku, order.quantity)).await?;
    if order.order_id == 0 { Err(OrderError::AlreadyShipped(order.order_id)) } else { Ok(()) }
}
"#;

const MAIN_BY_HAND: &str = r#"
#[tokio::main]
async fn main() -> lapin::Result<()> {
    let connection = lapin::Connection::connect("amqp://127.0.0.1", lapin::ConnectionProperties::default()).await?;
"#;

/// One loop for all handlers, as a careful team would have it.
const WORKER: &str = r#"use futures_util::StreamExt;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions};
use lapin::{BasicProperties, Channel};

pub trait Retryable: std::error::Error {
    fn is_retryable(&self) -> bool;
}

/// Consumes a queue: what fails is published again to a hold queue, or rejected.
pub async fn consume<T, E, F>(channel: Channel, queue: &'static str, handle: impl Fn(T) -> F + Send) -> lapin::Result<()>
where
    T: serde::de::DeserializeOwned + Send,
    E: Retryable + Send,
    F: Future<Output = Result<(), E>> + Send,
{
    channel.basic_qos(32, BasicQosOptions::default()).await?;
    let mut deliveries =
        channel.basic_consume(queue.into(), queue.into(), BasicConsumeOptions::default(), Default::default()).await?;
    while let Some(delivery) = deliveries.next().await {
        let delivery = delivery?;
        let Ok(payload) = serde_json::from_slice(&delivery.data) else {
            delivery.nack(BasicNackOptions { requeue: false, ..Default::default() }).await?;
            continue;
        };
        match handle(payload).await {
            Err(error) if error.is_retryable() => {
                let hold = format!("{queue}.retry.5s");
                let properties = BasicProperties::default().with_delivery_mode(2);
                channel
                    .basic_publish("".into(), hold.as_str().into(), BasicPublishOptions::default(), &delivery.data, properties)
                    .await?
                    .await?;
            }
            Err(error) => {
                eprintln!("{queue}: {error}");
                delivery.nack(BasicNackOptions { requeue: false, ..Default::default() }).await?;
                continue;
            }
            Ok(()) => {}
        }
        delivery.ack(BasicAckOptions::default()).await?;
    }
    Ok(())
}
"#;
