#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "")]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "amq.orders")]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "")]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "amq.dlq")]
async fn f5(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq(queue = "d", exchange = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"))]
async fn f6(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq(queue = "d", exchange = "amq.dlx"))]
async fn f7(_order: Order) -> Result<(), OrderError> {
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
}
