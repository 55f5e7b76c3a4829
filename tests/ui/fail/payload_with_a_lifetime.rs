#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{OrderError, register};

#[derive(serde::Deserialize)]
struct Name<'a>(&'a str);

#[consumer(queue = "order.process")]
async fn process_order(_name: Name<'_>) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
