#[path = "../shop.rs"]
mod shop;

use std::rc::Rc;

use mqguard::consumer;
use shop::{Order, OrderError, register};

async fn store(_id: u64) {}

#[consumer(queue = "order.process")]
async fn process_order(order: Order) -> Result<(), OrderError> {
    let order = Rc::new(order);
    store(order.order_id).await;
    drop(order);
    Ok(())
}

fn main() {
    register::<process_order>();
}
