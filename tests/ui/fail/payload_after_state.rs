#[path = "../shop.rs"]
mod shop;

use mqguard::{State, consumer};
use shop::{Db, Order, OrderError, register};

#[consumer(queue = "order.process")]
async fn process_order(_db: State<Db>, _order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
