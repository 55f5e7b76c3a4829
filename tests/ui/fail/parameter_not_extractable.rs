#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Db, Order, OrderError, register};

#[consumer(queue = "q")]
async fn f1(_order: Order, _db: Db, _number: u32) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f2(_order: Order, _other: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
}
