#![deny(warnings)]

use super::shop;

use mqguard::{RetryableError, consumer};
use shop::{Order, register};

#[cfg_attr(all(), consumer(queue = "q"))]
async fn annotated(_order: Order) {}

#[cfg_attr(any(), consumer(queue = "q"))]
#[allow(dead_code)]
async fn plain(_order: Order) {}

// Its type is not taken.
#[allow(non_camel_case_types, dead_code)]
struct plain {}

#[cfg_attr(all(), derive(RetryableError))]
#[cfg_attr(all(), retryable)]
#[allow(dead_code)]
enum Failure {
    Late,
    #[cfg_attr(all(), fatal)]
    Wrong,
}

pub(crate) fn main() {
    register::<annotated>();
    assert_eq!(Failure::Late.retry(), mqguard::Retry::Retryable);
    assert_eq!(Failure::Wrong.retry(), mqguard::Retry::Fatal);
}
