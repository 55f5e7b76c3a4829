#[path = "../shop.rs"]
mod shop;

use mqguard::{State, consumer};
use shop::{Order, OrderError, register};

#[consumer(queue = "order.process")]
async fn process_order(_order: Order, _db: State<impl Send>) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
