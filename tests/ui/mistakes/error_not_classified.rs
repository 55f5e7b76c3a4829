#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, register};

#[derive(Debug, thiserror::Error)]
#[error("out of stock")]
struct OutOfStock;

#[consumer(queue = "order.process")]
async fn process_order(order: Order) -> Result<(), OutOfStock> {
    if order.order_id == 0 { Err(OutOfStock) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}
