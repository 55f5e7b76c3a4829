#[path = "../shop.rs"]
mod shop;

use mqguard::{Precheck, consumer};
use shop::{Order, OrderError, register};

async fn still_wanted() -> Precheck {
    Precheck::Proceed
}

#[consumer(queue = "order.process", precheck = still_wanted)]
async fn process_order(order: Order) -> Result<(), OrderError> {
    if order.order_id == 0 { Err(OrderError) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}
