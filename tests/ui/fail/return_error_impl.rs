#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "order.process")]
async fn process_order(_order: Order) -> Result<(), impl std::error::Error> {
    Err(shop::OrderError)
}

fn main() {
    register::<process_order>();
}
