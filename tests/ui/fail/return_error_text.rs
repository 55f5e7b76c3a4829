#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "order.process")]
async fn process_order(_order: Order) -> Result<(), &'static str> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
