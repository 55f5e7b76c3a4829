#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q", dlq = "d", retry(max = 3, delay = "1d"), idempotent = "redis")]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 1000, delay = "30d"), idempotent = "redis")]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
}
