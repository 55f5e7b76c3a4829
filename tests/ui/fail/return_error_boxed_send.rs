#[path = "../shop.rs"]
mod shop;

use std::error::Error;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "order.process")]
async fn process_order(_order: Order) -> Result<(), Box<dyn Error + Send>> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
