#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "a")]
#[consumer(queue = "b")]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "a")]
#[mqguard::dead_letter_consumer(queue = "b")]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
}
