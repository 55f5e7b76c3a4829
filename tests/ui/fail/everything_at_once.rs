#[path = "../shop.rs"]
mod shop;

use mqguard::{RetryableError, consumer};
use shop::{Order, register};

#[derive(Debug, thiserror::Error, RetryableError)]
enum Failure {
    #[error("late")]
    Late,
    #[error("wrong")]
    #[fatal]
    Wrong,
    #[error("lost")]
    Lost,
}

#[consumer(
    quue = "order.process",
    retry(max = 3, dely = "5s", factor = "2"),
    idempotent = "rediss",
    timeout = 5,
)]
fn process_order(order: &Order) -> Result<(), Failure> {
    let _ = order;
    Ok(())
}

fn main() {
    register::<process_order>();
}
