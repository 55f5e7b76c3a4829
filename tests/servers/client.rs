//! A client of another library publishes, and reads the dead letters: Python's pika.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use mqguard::{Context, HeaderValue, Raw, RetryableError, State, consumer};
use serde::Deserialize;
use serde_json::Value;

use crate::input::{self, Order};
use crate::process::{BUNDLED, Orders, PATIENCE};
use crate::processes::{DLQ, QUEUE};
use crate::script::Log;
use crate::support::{Database, Rig, Vhost};

/// A dead letter as pika reads it.
#[derive(Debug, Deserialize)]
pub(crate) struct Letter {
    pub(crate) message_id: String,
    headers: serde_json::Map<String, Value>,
    /// In hexadecimal.
    body: String,
}

impl Letter {
    /// Takes all letters out of a queue; none when there is no Python with pika here.
    pub(crate) fn all(vhost: &Vhost, queue: &str) -> Option<Vec<Self>> {
        let text = pika(&["take", &vhost.url(), queue], "")?;
        Some(text.lines().map(|line| serde_json::from_str(line).expect("a letter")).collect())
    }

    /// The text of a header.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn body(&self) -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&self.body[at..at + 2], 16).expect("hexadecimal");
        (0..self.body.len()).step_by(2).map(byte).collect()
    }
}

/// Runs the client; what it printed. None when there is no Python with pika here.
fn pika(arguments: &[&str], stdin: &str) -> Option<String> {
    let Ok(python) = std::env::var("MQGUARD_TEST_PYTHON") else {
        eprintln!("not tested: MQGUARD_TEST_PYTHON names no Python with pika");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/client.py");
    let mut command = Command::new(python);
    command.arg(script).args(arguments).env("PYTHONUTF8", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
    child.stdin.take().expect("it is piped").write_all(stdin.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "the client failed: {}", output.status);
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// As another producer might write it: fields in another order, more of them, and spaces.
fn body(order: &Order) -> String {
    let Order { order_id, customer, date, cds, amount_cents } = order;
    format!(
        r#" {{ "note" : "ünïcode \u00e9 {order_id}", "amount_cents":{amount_cents}  ,"cds": {cds},"date":"{date}", "customer":{customer}, "order_id":{order_id}, "extra":[null,1.50] }} "#
    )
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn messages_of_another_client_are_consumed_and_it_reads_the_letters() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let (broker, store) = (vhost.url(), database.url());
    let on = ["--broker", &broker, "--store", &store, "--json", "--consume-only", "--expect"];
    // Declares the queues, and has nothing to do.
    Orders::run(&[&on[..], &["0"]].concat()).summary();

    let orders = input::read(None).unwrap();
    let twice = |order: &Order| if order.is_published_twice() { 2 } else { 1 };
    let line = |order: &Order| format!("{}\t{}\n", order.message_id(), body(order)).repeat(twice(order));
    let lines: String = orders.iter().map(line).collect();
    if pika(&["publish", &broker, QUEUE], &lines).is_none() {
        return;
    }
    let summary = Orders::start(&[&on[..], &["5000"]].concat()).ended(PATIENCE).summary();
    assert_eq!((summary.totals(), summary.duplicates), (BUNDLED, 250));

    let letters = Letter::all(&vhost, DLQ).unwrap();
    assert_eq!(letters.len(), 9);
    let free: Vec<&Order> = orders.iter().filter(|order| order.amount_cents == 0).collect();
    let dead: BTreeSet<String> = letters.iter().map(|letter| letter.message_id.clone()).collect();
    assert_eq!(dead, free.iter().map(|order| order.message_id()).collect());
    for letter in &letters {
        let order = free.iter().find(|order| order.message_id() == letter.message_id).unwrap();
        let error = format!("nothing to charge for order {}", order.order_id);
        assert_eq!(letter.body(), body(order).into_bytes());
        assert_eq!(letter.header("mqguard-reason"), "fatal");
        assert_eq!(letter.header("mqguard-error"), error);
        assert_eq!(letter.header("mqguard-error-kind"), "orders::OrderError");
        assert_eq!(letter.header("mqguard-queue"), QUEUE);
        assert_eq!(letter.header("mqguard-routing-key"), QUEUE);
        assert!(letter.header("mqguard-consumer").ends_with("process_order"), "{letter:?}");
        assert_eq!(letter.headers["mqguard-runs"], 1, "{letter:?}");
        let [attempt] = letter.headers["mqguard-attempts"].as_array().unwrap().as_slice() else { panic!("{letter:?}") };
        assert_eq!((&attempt["attempt"], &attempt["error"]), (&1.into(), &error.into()));
        let time = attempt["at"].as_str().unwrap();
        assert!(humantime::parse_rfc3339(time).is_ok() && time == letter.header("mqguard-first-failure"), "{letter:?}");
        // What the publisher said is still there.
        assert_eq!((letter.header("shop"), &letter.headers["n"]), ("grüße", &7.into()));
    }
}

/// Read recursively, headers like these overflow the stack and end the process, at each delivery.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn headers_that_are_nested_ever_deeper_are_bytes_from_some_depth_on() {
    let vhost = Vhost::new();
    let rig = Rig::start(&vhost, |guard| guard.consumer::<refuse>()).await;
    for (id, depth) in [("not deep", 20), ("deep", 1_000), ("deeper", 20_000)] {
        if pika(&["nest", &vhost.url(), "nested", id, &depth.to_string()], "").is_none() {
            return;
        }
        rig.ended(&[id]).await;
        let [letter] = &vhost.letters("dlq.nested", 1).await[..] else { panic!("one letter of {id}") };
        let mut levels = 0;
        let mut value = letter.message().headers.get("deep").unwrap();
        while let HeaderValue::Array(list) = value {
            levels += 1;
            value = list.first().unwrap();
        }
        // The table of headers is a level, too.
        let expected = if depth < 31 { (depth, true) } else { (31, false) };
        assert_eq!((levels, *value == HeaderValue::Bool(true)), expected, "{id}: {value:?}");
        assert_eq!(matches!(value, HeaderValue::Bytes(_)), depth > 31, "{id}: {value:?}");
        assert_eq!(letter.message().headers.get("flat").and_then(HeaderValue::as_i64), Some(7));
    }
    rig.shutdown().await;
}

#[derive(Debug, thiserror::Error, RetryableError)]
#[error("no")]
#[fatal]
struct Refused;

#[consumer(queue = "nested", retry(max = 1, delay = "50ms"), dlq = "dlq.nested")]
async fn refuse(_body: Raw, log: State<Log>, cx: Context) -> Result<(), Refused> {
    log.ran("nested", &cx);
    Err(Refused)
}
