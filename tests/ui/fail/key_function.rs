#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

fn price(order: &Order) -> f64 {
    order.price
}

fn owned(order: Order) -> u64 {
    order.order_id
}

#[consumer(queue = "q", idempotent(store = "redis", key = price))]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "redis", key = owned))]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "redis", key = order_id))]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
}
