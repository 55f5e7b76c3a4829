#[path = "../shop.rs"]
mod shop;

use mqguard::{Retry, consumer};
use shop::{Order, OrderError, register};

async fn class(_error: &OrderError) -> Retry {
    Retry::Fatal
}

#[consumer(queue = "order.process", classify = class)]
async fn process_order(order: Order) -> Result<(), OrderError> {
    if order.order_id == 0 { Err(OrderError) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}
