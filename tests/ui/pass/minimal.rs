#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unused_async, clippy::duration_suboptimal_units)]

use super::shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q")]
async fn f(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn nothing_returned(_order: Order) {}

pub(crate) fn main() {
    register::<f>();
    register::<nothing_returned>();
}
