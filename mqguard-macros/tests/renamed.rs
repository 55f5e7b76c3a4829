//! The expansion finds mqguard under the name that `Cargo.toml` gives it: here it is `mq`. It passes the strictest lints.

#![deny(clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async)]

use std::time::Duration;

use mq::{Consumer, Context, Precheck, Raw, Retry, RetryableError, State, consumer, dead_letter_consumer};

#[derive(Debug, thiserror::Error, RetryableError)]
enum OrderError {
    #[error("late")]
    #[retryable(after = "5s")]
    Late,
    #[error(transparent)]
    #[retryable(inherit)]
    Io(#[from] std::io::Error),
}

#[derive(Debug, serde::Deserialize)]
struct Order {
    id: u64,
}

#[consumer(queue = "order.process", dlq = "dlq", retry(max = 3), idempotent(store = "memory", key = "id"))]
async fn process_order(_order: Order, _cx: Context, _number: State<u8>) -> Result<(), OrderError> {
    Err(OrderError::Late)
}

#[consumer(queue = "refund.process", precheck = wanted, classify = class)]
async fn process_refund(_order: Order) -> Result<(), String> {
    Ok(())
}

async fn wanted(_order: &Order) -> Precheck {
    Precheck::Proceed
}

const fn class(_error: &String) -> Retry {
    Retry::Fatal
}

#[dead_letter_consumer(queue = "dlq", of = process_order)]
async fn letters(_letter: Raw) {}

#[test]
fn renamed() {
    assert_eq!(<process_order as Consumer>::SPEC.queue, "order.process");
    assert_eq!(<process_refund as Consumer>::SPEC.queue, "refund.process");
    assert_eq!(<letters as Consumer>::SPEC.queue, "dlq");
    assert_eq!(process_order::business_key(&Order { id: 7 }), Some("7".to_owned()));
    assert_eq!(OrderError::Late.retry(), Retry::After(Duration::from_secs(5)));
}
