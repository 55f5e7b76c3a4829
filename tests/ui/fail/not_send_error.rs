#[path = "../shop.rs"]
mod shop;

use std::error::Error;

use mqguard::consumer;
use shop::{Order, OrderError, register};

async fn alert(_text: String) {}

fn check(_order: &Order) -> Result<(), Box<dyn Error>> {
    Ok(())
}

#[consumer(queue = "order.process")]
async fn process_order(order: Order) -> Result<(), OrderError> {
    if let Err(error) = check(&order) {
        alert(error.to_string()).await;
    }
    Ok(())
}

fn main() {
    register::<process_order>();
}
