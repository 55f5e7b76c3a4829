#![deny(warnings)]

use super::shop;

use mqguard as mq;
use mqguard::RetryableError as Classified;
use mqguard::consumer as handles;
use shop::{Order, register};

#[handles(queue = "q")]
async fn renamed(_order: Order) {}

#[mq::consumer(queue = "q")]
async fn by_alias(_order: Order) -> Result<(), Late> {
    Err(Late)
}

#[::mqguard::consumer(queue = "q")]
async fn by_path(_order: Order) {}

#[derive(Debug, thiserror::Error, Classified)]
#[error("late")]
#[retryable]
struct Late;

pub(crate) fn main() {
    register::<renamed>();
    register::<by_alias>();
    register::<by_path>();
}
