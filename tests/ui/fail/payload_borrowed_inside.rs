#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{OrderError, register};

#[consumer(queue = "order.process")]
async fn process_order(_names: Vec<&'static str>) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
