#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q", dlq = "d", retry(max = "three"))]
async fn f1(order: Order) -> Result<u64, OrderError> {
    Ok(order.order_id)
}

async fn by_hand(order: Order) -> Result<u64, OrderError> {
    f1(order).await
}

fn main() {
    register::<f1>();
    let _ = by_hand;
}
