#![deny(warnings)]

use super::shop;

use mqguard::{Attempt, consumer};
use shop::{Order, OrderError, register};

#[consumer(queue = "q", dlq = "d", retry(max = 3))]
async fn f(order: Order, attempt: Attempt) -> Result<(), OrderError> {
    if order.order_id == 0 && !attempt.is_last() { Err(OrderError) } else { Ok(()) }
}

async fn by_hand(order: Order) -> Result<(), OrderError> {
    let pointer: fn(Order, Attempt) -> _ = f;
    pointer(order, Attempt::default()).await
}

pub(crate) fn main() {
    register::<f>();
    let _ = by_hand;
}
