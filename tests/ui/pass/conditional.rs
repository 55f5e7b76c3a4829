#![deny(warnings)]
#![allow(non_camel_case_types)]

use super::shop;

use mqguard::{RetryableError, consumer};
use shop::{Order, register};

#[consumer(queue = "q")]
#[cfg(target_os = "none")]
async fn never(_order: NotThere) {}

#[cfg(target_os = "none")]
#[consumer(queue = "q")]
async fn never_above(_order: NotThere) {}

#[cfg(not(target_os = "none"))]
#[consumer(queue = "q")]
#[cfg(not(target_os = "none"))]
#[cfg_attr(not(target_os = "none"), allow(unused_variables), doc = "x")]
async fn always(order: Order) {}

#[derive(RetryableError)]
enum Failure {
    #[cfg(target_os = "none")]
    #[fatal]
    Never(NotThere),
    #[cfg(not(target_os = "none"))]
    #[retryable]
    Always,
}

// The name is free.
struct never;
struct never_above;

pub(crate) fn main() {
    register::<always>();
    let _ = (never, never_above, Failure::Always);
}
