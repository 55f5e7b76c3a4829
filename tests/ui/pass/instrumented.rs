#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unused_async)]

use super::shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};
use tracing::instrument;

#[consumer(queue = "q")]
#[instrument(skip_all, fields(order = order.order_id), err)]
async fn below(order: Order) -> Result<(), OrderError> {
    if order.order_id == 0 { Err(OrderError) } else { Ok(()) }
}

#[tracing::instrument(skip(_order))]
#[consumer(queue = "q")]
async fn above(_order: Order) {}

pub(crate) fn main() {
    register::<below>();
    register::<above>();
}
