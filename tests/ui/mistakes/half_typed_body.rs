#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "order.process")]
async fn process_order(order: Order) -> Result<(), OrderError> {
    let _id = order.;
    Ok(())
}

fn main() {
    register::<process_order>();
}
