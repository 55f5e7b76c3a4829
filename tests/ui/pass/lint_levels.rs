#![deny(warnings)]

use super::shop;

use mqguard::{RetryableError, consumer};
use shop::{Order, register};

#[consumer(queue = "q")]
#[allow(clippy::unused_async, unused_variables)]
async fn allowed(order: Order) {}

#[consumer(queue = "q")]
#[expect(unused_variables)]
async fn expected(order: Order) {}

#[consumer(queue = "q")]
#[deprecated]
#[allow(non_snake_case)]
async fn Old(_order: Order) {}

#[allow(dead_code)]
#[consumer(queue = "q")]
async fn not_registered(_order: Order) {}

#[derive(Debug, RetryableError)]
enum Failure {
    #[deprecated]
    #[allow(dead_code)]
    #[fatal]
    Old,
    #[retryable]
    New,
}

pub(crate) fn main() {
    register::<allowed>();
    register::<expected>();
    register::<Old>();
    let _ = Failure::New;
}
