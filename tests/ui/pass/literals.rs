#![deny(warnings)]

use super::shop;

use mqguard::{Backoff, Consumer, consumer};
use shop::{Order, register};

#[consumer(
    queue = "q",
    dlq = "d",
    retry(max = 1_000, delay = "1s", factor = 1.0, jitter = 0),
    prefetch = 0x10,
    concurrency = 0b1000
)]
async fn numbers(_order: Order) {}

#[consumer(queue = "q", dlq = "d", retry(max = 3, factor = 15e-1, jitter = 1, max_delay = "1m"))]
async fn fractions(_order: Order) {}

#[consumer(queue = "q", dlq = "d", retry(schedule = ["0s", "500ms", "1m30s", "1d2h3m4s5ms",],), timeout = "0005s")]
async fn durations(_order: Order) {}

#[consumer(queue = r#"a "quoted" name"#, dlq = "\u{e4}\x41\t", bind(exchange = "x", routing_key = ""))]
async fn texts(_order: Order) {}

pub(crate) fn main() {
    register::<numbers>();
    register::<fractions>();
    register::<durations>();
    register::<texts>();
    assert_eq!(<numbers as Consumer>::SPEC.prefetch, 16);
    assert_eq!(<texts as Consumer>::SPEC.queue, "a \"quoted\" name");
    let retry = <fractions as Consumer>::SPEC.retry.map(|retry| retry.backoff);
    assert!(matches!(retry, Some(Backoff::Exponential { factor: 1.5, .. })));
}
