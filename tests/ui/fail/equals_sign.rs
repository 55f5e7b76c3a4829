#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue: "q")]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue "q")]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = )]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue == "q")]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue => "q")]
async fn f5(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max: 3, delay = ))]
async fn f6(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
    register::<f5>();
    register::<f6>();
}
