#[path = "../shop.rs"]
mod shop;

use std::rc::Rc;

use mqguard::{State, consumer};
use shop::{Db, Order, OrderError, register};

#[consumer(queue = "order.process")]
async fn process_order(_order: Order, _db: State<Rc<Db>>) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
