#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError};

#[consumer(queue = "order.process")]
async fn process_order(order: ) -> Result<(), OrderError> {
    Ok(())
}

fn main() {}
