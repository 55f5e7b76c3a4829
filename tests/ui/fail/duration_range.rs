#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q", dlq = "d", retry(max = 1, delay = "31d"))]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 1, max_delay = "31d"))]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(schedule = ["1s", "721h"]))]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 1, within = "500d"))]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout = "30m")]
async fn f5(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout = "0s")]
async fn f6(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "redis", lease = "500ms"))]
async fn f7(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "redis", lease = "2h"))]
async fn f8(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "redis", ttl = "0s"))]
async fn f9(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "redis", ttl = "400d"))]
async fn f10(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
    register::<f5>();
    register::<f6>();
    register::<f7>();
    register::<f8>();
    register::<f9>();
    register::<f10>();
}
