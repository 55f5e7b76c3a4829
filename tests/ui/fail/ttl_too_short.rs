#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(
    queue = "order.process",
    dlq = "dlq.order.process",
    retry(max = 3, delay = "10m", factor = 4),
    idempotent(store = "redis", key = "order_id", ttl = "1h"),
)]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", idempotent(store = "redis", ttl = "10m"), retry(max = 1, delay = "10m", jitter = 0.5), timeout = "1m")]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", idempotent(store = "redis", ttl = "10m", lease = "5m"), retry(max = 100, within = "5m"), timeout = "1m")]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
}
