#[path = "../shop.rs"]
mod shop;

use mqguard::{RetryableError, consumer};
use shop::{Order, register};

#[derive(Debug, thiserror::Error, RetryableError)]
enum ShopError {
    #[error("no stock")]
    #[retryable]
    NoStock,
    #[error("order {0} was shipped")]
    Shipped(u64),
}

#[consumer(queue = "order.process")]
async fn process_order(order: Order) -> Result<(), ShopError> {
    if order.order_id == 0 { Err(ShopError::NoStock) } else { Err(ShopError::Shipped(order.order_id)) }
}

fn main() {
    register::<process_order>();
}
