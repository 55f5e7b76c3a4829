#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q")]
async fn f1(order: Order) -> Result<(), OrderError> {
    let id = order.;
    Ok(())
}

fn main() {
    register::<f1>();
}
