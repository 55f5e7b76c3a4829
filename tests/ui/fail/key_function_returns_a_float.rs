#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

fn order_key(order: &Order) -> f64 {
    order.price
}

#[consumer(queue = "order.process", idempotent(store = "redis", key = order_key))]
async fn process_order(order: Order) -> Result<(), OrderError> {
    if order.order_id == 0 { Err(OrderError) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}
