#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = 5)]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = 'q')]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = b"q")]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = true)]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = order.process)]
async fn f5(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = QUEUE)]
async fn f6(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = concat!("a", "b"))]
async fn f7(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = names::QUEUE)]
async fn f8(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue("q"))]
async fn f9(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue)]
async fn f10(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = dlq.order)]
async fn f11(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = 5)]
async fn f12(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq)]
async fn f13(_order: Order) -> Result<(), OrderError> {
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
    register::<f11>();
    register::<f12>();
    register::<f13>();
}
