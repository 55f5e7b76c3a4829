#[path = "../shop.rs"]
mod shop;

use mqguard::{Precheck, consumer};
use shop::{Order, OrderError, register};

#[derive(Debug, thiserror::Error)]
#[error("lost")]
struct Lost;

async fn still_wanted(_order: &Order) -> Result<Precheck, Lost> {
    Err(Lost)
}

#[consumer(queue = "order.process", precheck = still_wanted)]
async fn process_order(order: Order) -> Result<(), OrderError> {
    if order.order_id == 0 { Err(OrderError) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}
