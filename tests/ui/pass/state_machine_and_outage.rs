#![deny(warnings)]

use super::shop;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "q", idempotent(store = "sqlite", mode = "state_machine", identity = "message_id", missing_id = "run"))]
async fn by_id(_order: Order) {}

#[consumer(queue = "q", idempotent(store = "postgres", key = "order_id", identity = "key", on_store_down = "run", lease = "1s"))]
async fn by_key(_order: Order) {}

#[consumer(queue = "q", idempotent(store = "mysql", key = "customer.id", identity = "key+message_id", on_store_down = "wait"))]
async fn by_both(_order: Order) {}

#[consumer(queue = "q", idempotent = "redis", on_timeout = "retry", on_panic = "retry", queue_type = "quorum")]
async fn defaults_said(_order: Order) {}

pub(crate) fn main() {
    register::<by_id>();
    register::<by_key>();
    register::<by_both>();
    register::<defaults_said>();
}
