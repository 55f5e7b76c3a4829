//! mqguard under another name in `Cargo.toml`: `mq = { package = "mqguard", ... }`.

use mq::{Attempt, Consumer, DeadLetter, Precheck, RetryableError, State, consumer, dead_letter_consumer};

#[derive(Debug, serde::Deserialize)]
struct Order {
    order_id: u64,
}

#[derive(Debug, thiserror::Error, RetryableError)]
enum OrderError {
    #[error("no stock")]
    #[retryable(after = "1m")]
    NoStock,
    #[error("storage")]
    #[retryable(inherit)]
    Storage(#[from] std::io::Error),
}

#[consumer(
    queue = "order.process",
    retry(max = 3, delay = "5s"),
    dlq = "dlq.order.process",
    idempotent(store = "memory", key = "order_id"),
    bind(exchange = "orders", routing_key = "order.*"),
    precheck = wanted
)]
async fn process_order(order: Order, stock: State<u64>, _attempt: Attempt) -> Result<(), OrderError> {
    if order.order_id > *stock { Err(OrderError::NoStock) } else { Ok(()) }
}

async fn wanted(_order: &Order) -> Precheck {
    Precheck::Proceed
}

#[consumer(queue = "refund.process", classify = class)]
async fn process_refund(_order: Order) -> Result<(), String> {
    Ok(())
}

fn class(_error: &String) -> mq::Retry {
    mq::Retry::Fatal
}

#[dead_letter_consumer(queue = "dlq.order.process", of = process_order)]
async fn record(_letter: DeadLetter<Order>) {}

#[test]
fn the_macros_find_it() {
    assert_eq!(<process_order as Consumer>::SPEC.queue, "order.process");
    assert_eq!(<process_refund as Consumer>::SPEC.queue, "refund.process");
    assert_eq!(<record as Consumer>::SPEC.queue, "dlq.order.process");
    assert_eq!(OrderError::from(std::io::Error::from(std::io::ErrorKind::TimedOut)).retry(), mq::Retry::Retryable);
}
