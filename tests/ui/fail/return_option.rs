#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "order.process")]
async fn process_order(_order: Order) -> Option<()> {
    Some(())
}

fn main() {
    register::<process_order>();
}
