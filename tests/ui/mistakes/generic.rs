#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{OrderError, register};

#[consumer(queue = "order.process")]
async fn process_order<T: Send>(order: T) -> Result<(), OrderError> {
    drop(order);
    Ok(())
}

fn main() {
    register::<process_order>();
}
