#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "order.process", dlq = "dead", retry(max = "three"))]
async fn process_order(order: Order) -> Result<(), OrderError> {
    if order.order_id == 0 { Err(OrderError) } else { Ok(()) }
}

async fn by_hand(order: Order) -> Result<(), OrderError> {
    let outcome: Result<(), OrderError> = process_order(order).await;
    outcome
}

fn main() {
    register::<process_order>();
    let _ = by_hand;
}
