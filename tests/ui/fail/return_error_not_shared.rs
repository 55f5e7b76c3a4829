#[path = "../shop.rs"]
mod shop;

use std::rc::Rc;

use mqguard::{RetryableError, consumer};
use shop::{Order, register};

#[derive(Debug, thiserror::Error, RetryableError)]
#[error("lost {0}")]
#[fatal]
struct Lost(Rc<str>);

#[consumer(queue = "order.process")]
async fn process_order(_order: Order) -> Result<(), Lost> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
