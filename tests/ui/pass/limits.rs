#![deny(warnings)]

use super::shop;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(
    queue = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    dlq = "d",
    retry(max = 1000, delay = "0s", factor = 100, max_delay = "30d", jitter = 1.0)
)]
async fn longest(_order: Order) {}

#[consumer(
    queue = "q",
    dlq = "d",
    retry(max = 1, delay = "30d", within = "366d"),
    idempotent(store = "redis", ttl = "366d", lease = "1h"),
    prefetch = 1,
    concurrency = 1,
    timeout = "1ms"
)]
async fn slowest(_order: Order) {}

#[consumer(queue = "q", bind(exchange = "amq.topic", routing_key = "#"), prefetch = 2000, concurrency = 2000)]
async fn widest(_order: Order) {}

#[consumer(queue = "\u{fc}n\u{ef}code \"quoted\"")]
async fn unicode(_order: Order) {}

#[consumer(queue = r"raw.text")]
async fn raw_text(_order: Order) {}

pub(crate) fn main() {
    register::<longest>();
    register::<slowest>();
    register::<widest>();
    register::<unicode>();
    register::<raw_text>();
}
