#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "order.process")]
async fn process_order(_order: Order) -> Result<u64, OrderError> {
    Ok(1)
}

fn main() {
    register::<process_order>();
}
