#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q", dlq = "d", retry(max = 3, delay = 5))]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout = 30000)]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout = 5s)]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout = 1.5)]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout = 5 s)]
async fn f5(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout = TIMEOUT)]
async fn f6(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout = Duration::from_secs(5))]
async fn f7(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout)]
async fn f8(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout("5s"))]
async fn f9(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", timeout = -5)]
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
