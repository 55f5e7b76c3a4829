#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q", retries = 3, dead_letter_queue = "d", workers = 4, qos = 8)]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(name = "q")]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max_attempts = 3))]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, interval = "5s", multiplier = 2, max_interval = "1m", deadline = "1h"))]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(backend = "redis", expire = "24h", field = "order_id"))]
async fn f5(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
    register::<f5>();
}
