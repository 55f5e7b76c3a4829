#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(quue = "order.process")]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "order.process", retyr(max = 3), dlq = "d")]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "order.process", retry(max = 3), dql = "d")]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "order.process", prefech = 8, time_out = "5s")]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(Queue = "order.process")]
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
