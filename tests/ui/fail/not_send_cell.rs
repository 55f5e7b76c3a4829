#[path = "../shop.rs"]
mod shop;

use std::cell::RefCell;

use mqguard::consumer;
use shop::{Order, OrderError, register};

async fn store(_id: u64) {}

#[consumer(queue = "order.process")]
async fn process_order(order: Order) -> Result<(), OrderError> {
    let total = RefCell::new(0);
    let seen = &total;
    store(order.order_id).await;
    *seen.borrow_mut() += 1;
    Ok(())
}

fn main() {
    register::<process_order>();
}
