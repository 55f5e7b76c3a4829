#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "order.process", idempotent("redis"))]
async fn process_order(order: Order) -> Result<(), OrderError> {
    if order.order_id == 0 { Err(OrderError) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}
