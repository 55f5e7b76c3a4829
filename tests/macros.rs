//! What the attributes declare and the derive decides.

use std::time::Duration;

use mqguard::{Attempt, Consumer, Context, Headers, Precheck, Raw, RetryableError, State, consumer, dead_letter_consumer};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Order {
    order_id: u64,
}

#[derive(Debug, thiserror::Error, RetryableError)]
enum OrderError {
    #[error("inventory unreachable")]
    #[retryable(inherit)]
    Inventory(#[from] std::io::Error),
    #[error("throttled")]
    #[retryable(after = retry_after)]
    Throttled { retry_after: Duration },
    #[error("closed")]
    #[retryable(after = 0, uncounted)]
    Closed(Option<Duration>),
    #[error("busy")]
    #[retryable]
    Busy,
    #[error("order {0} already shipped")]
    #[fatal]
    AlreadyShipped(u64),
}

async fn wanted(order: &Order) -> Precheck {
    if order.order_id > 0 { Precheck::Proceed } else { Precheck::Skip }
}

/// Processes an order.
#[consumer(
    queue = "order.process",
    retry(max = 3, delay = "5s", factor = 2),
    dlq = "dlq.order.process.fail",
    idempotent(store = "redis", key = "order_id"),
    precheck = wanted
)]
async fn process_order(
    order: Order,
    State(_db): State<u8>,
    _cx: Context,
    _attempt: Attempt,
    _headers: Headers,
) -> Result<(), OrderError> {
    match order.order_id {
        0 => Err(OrderError::Busy),
        _ => Ok(()),
    }
}

#[dead_letter_consumer(queue = "dlq.order.process.fail", of = process_order)]
async fn letters(letter: Raw) {
    let _ = letter;
}

#[test]
fn the_attribute_becomes_the_spec() {
    let spec = <process_order as Consumer>::SPEC;
    assert_eq!((spec.name, spec.queue), ("process_order", "order.process"));
    assert_eq!(<letters as Consumer>::SPEC.queue, "dlq.order.process.fail");
}
