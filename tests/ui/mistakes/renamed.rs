#[path = "../shop.rs"]
mod shop;

// As a crate would that re-exports mqguard.
mod company {
    pub use mqguard;
}

use company::mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "order.process", crate = "company::mqguard")]
async fn process_order(order: Order) -> Result<(), OrderError> {
    if order.order_id == 0 { Err(OrderError) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}
