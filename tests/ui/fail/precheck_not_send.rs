#[path = "../shop.rs"]
mod shop;

use std::rc::Rc;

use mqguard::{Precheck, consumer};
use shop::{Order, OrderError, register};

async fn still_wanted(_order: &Order) -> Precheck {
    let shared = Rc::new(1);
    std::future::ready(()).await;
    drop(shared);
    Precheck::Proceed
}

#[consumer(queue = "order.process", precheck = still_wanted)]
async fn process_order(order: Order) -> Result<(), OrderError> {
    if order.order_id == 0 { Err(OrderError) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}
