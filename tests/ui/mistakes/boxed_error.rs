#[path = "../shop.rs"]
mod shop;

use std::error::Error;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "order.process")]
async fn process_order(order: Order) -> Result<(), Box<dyn Error>> {
    if order.order_id == 0 { Err("no stock".into()) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}
