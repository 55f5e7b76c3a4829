#![deny(warnings)]
#![allow(non_camel_case_types)]

#[path = "../shop.rs"]
mod shop;

use mqguard::{RetryableError, consumer};
use shop::{Order, register};

#[consumer(queue = "q")]
#[cfg(any())]
async fn never(_order: NotThere) {}

#[cfg(any())]
#[consumer(queue = "q")]
async fn never_above(_order: NotThere) {}

#[cfg(all())]
#[consumer(queue = "q")]
#[cfg(all())]
#[cfg_attr(all(), allow(unused_variables), doc = "x")]
async fn always(order: Order) {}

#[derive(RetryableError)]
enum Failure {
    #[cfg(any())]
    #[fatal]
    Never(NotThere),
    #[cfg(all())]
    #[retryable]
    Always,
}

// The name is free.
struct never;
struct never_above;

fn main() {
    register::<always>();
    let _ = (never, never_above, Failure::Always);
}
