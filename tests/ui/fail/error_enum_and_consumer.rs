#[path = "../shop.rs"]
mod shop;

use mqguard::{RetryableError, consumer};
use shop::{Order, register};

#[derive(Debug, thiserror::Error, RetryableError)]
enum ShopError {
    #[error("no stock")]
    NoStock,
    #[error("shipped")]
    #[retryable(after = "5 min")]
    Shipped,
}

#[consumer(queue = "order.process", retry(max = 3))]
async fn process_order(order: Order) -> Result<(), ShopError> {
    if order.order_id == 0 { Err(ShopError::NoStock) } else { Err(ShopError::Shipped) }
}

fn main() {
    register::<process_order>();
}
