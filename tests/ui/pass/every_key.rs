#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unused_async, clippy::duration_suboptimal_units)]

use super::shop;

use mqguard::{Precheck, Retry, consumer};
use shop::{Order, register};

#[consumer(
    queue = "order.process",
    dlq(queue = "dlq.order.process.fail", exchange = "dead"),
    retry(max = 5, delay = "500ms", factor = 1.5, max_delay = "1h30m", jitter = 0.25, within = "2d"),
    idempotent(
        store = "redis",
        key = "customer.id",
        identity = "key+message_id",
        ttl = "7d",
        lease = "1m",
        missing_id = "run",
        mode = "unique",
        on_store_down = "wait",
    ),
    bind(exchange = "orders", routing_key = "order.*"),
    bind(exchange = "refunds", kind = "direct", routing_key = ""),
    bind(exchange = "all", kind = "fanout"),
    queue_type = "classic",
    prefetch = 2_000,
    concurrency = 10,
    timeout = "29m",
    on_timeout = "fatal",
    on_panic = "retry",
    precheck = still_wanted,
    classify = class,
    crate = mqguard,
)]
async fn f(order: Order) -> Result<(), String> {
    let _ = order;
    Ok(())
}

async fn still_wanted(order: &Order) -> Precheck {
    if order.order_id > 0 { Precheck::Proceed } else { Precheck::Skip }
}

#[allow(clippy::ptr_arg)]
fn class(error: &String) -> Retry {
    if error.is_empty() { Retry::Fatal } else { Retry::Retryable }
}

#[consumer(queue = "q", dlq = "d", retry(schedule = ["0s", "1s", "10s"]), idempotent = "memory")]
async fn scheduled(_order: Order) {}

#[consumer(queue = "q", dlq = "d", retry(schedule = ["0s", "1s"], max = 10, jitter = 1), idempotent(store = "memory", key = "order_id", identity = "key"))]
async fn repeated(_order: Order) {}

#[consumer(queue = "q", idempotent(store = "mysql", mode = "state_machine", on_store_down = "run"))]
async fn logged(_order: Order) {}

#[consumer(queue = "q", idempotent = "postgres")]
async fn by_postgres(_order: Order) {}

#[consumer(queue = "q", idempotent = "sqlite")]
async fn by_sqlite(_order: Order) {}

pub(crate) fn main() {
    register::<f>();
    register::<scheduled>();
    register::<repeated>();
    register::<logged>();
    register::<by_postgres>();
    register::<by_sqlite>();
}
