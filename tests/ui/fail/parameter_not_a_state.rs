#[path = "../shop.rs"]
mod shop;

use std::sync::Arc;

use mqguard::consumer;
use shop::{Db, Order, OrderError, register};

#[consumer(queue = "order.process")]
async fn process_order(_order: Order, _db: Arc<Db>) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
