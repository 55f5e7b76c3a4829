#![deny(warnings, clippy::pedantic)]

#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q")]
async fn f(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn nothing_returned(_order: Order) {}

fn main() {
    register::<f>();
    register::<nothing_returned>();
}
