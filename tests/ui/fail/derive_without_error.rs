#[path = "../shop.rs"]
mod shop;

use mqguard::{RetryableError, consumer};
use shop::{Order, register};

#[derive(RetryableError)]
#[fatal]
struct Lost;

#[consumer(queue = "order.process")]
async fn process_order(_order: Order) -> Result<(), Lost> {
    Err(Lost)
}

fn main() {
    register::<process_order>();
}
