#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

async fn process_order(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn process_refund(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

struct Service;

fn main() {
    register::<process_order>();
    register::<process_refnd>();
    register::<Service>();
}
