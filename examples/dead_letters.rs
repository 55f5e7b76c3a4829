//! Reads the dead letters of the example `orders` and writes each as a line of JSON.
//!
//! `cargo run --example dead_letters -- --broker amqp://guest:guest@localhost:5672/%2f`. Without a broker it shows three letters of an
//! embedded one: an order that is not JSON, one that cannot be charged, and one whose payment service was down too often.

#![allow(clippy::print_stdout, reason = "letters are its output")]

use std::time::SystemTime;

use clap::Parser;
use mqguard::{DeadLetter, Guard, RetryableError, State, consumer, dead_letter_consumer};
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[derive(Parser)]
struct Options {
    /// The broker whose letters are read.
    #[arg(long, default_value = "memory://")]
    broker: String,
    /// End after this many letters (without it: at Ctrl-C).
    #[arg(long)]
    expect: Option<usize>,
}

#[dead_letter_consumer(queue = "dlq.order.process.fail")]
async fn log_letter(letter: DeadLetter<Value>, seen: State<mpsc::UnboundedSender<()>>) {
    println!("{}", describe(&letter));
    // The receiver is gone once enough letters were seen.
    seen.send(()).unwrap_or_default();
}

fn describe(letter: &DeadLetter<Value>) -> Value {
    let time = |time: Option<SystemTime>| time.map(|time| humantime::format_rfc3339_millis(time).to_string());
    let error = letter.error();
    let attempts = letter.attempts().into_iter().map(
        |failed| json!({ "attempt": failed.attempt, "at": time(Some(failed.at)), "kind": failed.kind, "error": failed.error }),
    );
    json!({
        "message_id": letter.message_id(),
        "reason": letter.reason().to_string(),
        "error": error.as_ref().map(|error| &error.message),
        "error_chain": error.as_ref().map(|error| &error.chain),
        "runs": letter.runs(),
        "attempts": attempts.collect::<Vec<_>>(),
        "first_failure": time(letter.first_failure()),
        "died": time(letter.died()),
        "queue": letter.queue(),
        "consumer": letter.consumer(),
        // A body that is not JSON is shown as text.
        "body": letter.payload().cloned().unwrap_or_else(|_| String::from_utf8_lossy(letter.body()).into()),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_env_filter("error").with_writer(std::io::stderr).init();
    let options = Options::parse();
    let embedded = options.broker.starts_with("memory:");
    let expected = options.expect.or(embedded.then_some(3));
    let (seen, mut letters) = mpsc::unbounded_channel::<()>();
    let mut guard = Guard::connect(&options.broker)?.state(seen).consumer::<log_letter>();
    if embedded {
        guard = guard.consumer::<charge>();
    }
    let Some(expected) = expected else { return Ok(guard.run().await?) };
    let running = guard.start().await?;
    if embedded {
        publish_samples(&running.publisher()).await?;
    }
    for _ in 0..expected {
        letters.recv().await;
    }
    Ok(running.shutdown().await?)
}

/// What gives the embedded broker something to show.
#[consumer(queue = "order.process", retry(max = 2, delay = "20ms"), dlq = "dlq.order.process.fail", timeout = "5s")]
async fn charge(order: Order) -> Result<(), ChargeError> {
    if order.amount_cents == 0 {
        return Err(ChargeError::NothingToCharge);
    }
    Err(ChargeError::PaymentDown(std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "payment.example:443")))
}

#[derive(serde::Deserialize)]
struct Order {
    amount_cents: u64,
}

#[derive(Debug, thiserror::Error, RetryableError)]
enum ChargeError {
    #[error("nothing to charge")]
    #[fatal]
    NothingToCharge,
    #[error("the payment service does not answer")]
    #[retryable(inherit)]
    PaymentDown(#[source] std::io::Error),
}

async fn publish_samples(publisher: &mqguard::Publisher) -> Result<(), Box<dyn std::error::Error>> {
    publisher.bytes("{ this is not JSON").message_id("sample-1").to_queue("order.process").await?;
    publisher.json(&json!({ "amount_cents": 0 }))?.message_id("sample-2").to_queue("order.process").await?;
    publisher.json(&json!({ "amount_cents": 1177 }))?.message_id("sample-3").to_queue("order.process").await?;
    Ok(())
}
