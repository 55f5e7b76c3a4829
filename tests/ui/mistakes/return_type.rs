#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "order.process")]
async fn process_order(order: Order) -> u64 {
    order.order_id
}

fn main() {
    register::<process_order>();
}
