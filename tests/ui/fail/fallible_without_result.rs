#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "order.process")]
async fn process_order(order: Order) {
    let _: u64 = order.customer.id.parse()?;
}

fn main() {
    register::<process_order>();
}
