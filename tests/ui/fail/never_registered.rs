#![deny(dead_code)]

#[path = "../shop.rs"]
mod shop;

use shop::{Order, OrderError};

#[mqguard::consumer(queue = "q")]
async fn f1(order: Order) -> Result<(), OrderError> {
    let _ = order.order_id;
    Ok(())
}

#[mqguard::consumer(queue = "q")]
pub(crate) async fn f2(order: Order) -> Result<(), OrderError> {
    let _ = order.order_id;
    Ok(())
}

fn main() {}
