#![deny(warnings)]
#![allow(non_snake_case)]

use super::shop;

use shop::{Order, OrderError, register};

#[allow(dead_code)]
mod shadow {
    pub struct Result;
    pub struct Option;
    pub struct String;
    pub struct Vec;
    pub struct Box;
    pub fn Ok() {}
    pub fn Some() {}
    pub fn None() {}
    pub fn Err() {}
    pub trait Send {}
    pub trait Future {}
    pub trait Into {}
    pub mod std {}
    pub mod core {}
    pub mod alloc {}
    pub mod mqguard {}
}
#[allow(unused_imports)]
use shadow::*;

type Outcome = ::core::result::Result<(), OrderError>;

#[::mqguard::consumer(
    queue = "q",
    dlq = "d",
    retry(max = 3, delay = "1s", max_delay = "1m", within = "1h"),
    idempotent(store = "memory", key = "order_id"),
    bind(exchange = "x", routing_key = "#"),
    concurrency = 4,
    precheck = wanted,
)]
async fn f(_order: Order, _db: ::mqguard::State<u8>) -> Outcome {
    ::core::result::Result::Ok(())
}

async fn wanted(_order: &Order) -> ::mqguard::Precheck {
    ::mqguard::Precheck::Proceed
}

#[::mqguard::consumer(queue = "q", classify = class)]
async fn classified(_order: Order) -> Outcome {
    ::core::result::Result::Ok(())
}

fn class(_error: &OrderError) -> ::mqguard::Retry {
    ::mqguard::Retry::Fatal
}

#[::mqguard::dead_letter_consumer(queue = "d", of = f)]
async fn letters(_letter: ::mqguard::Raw) {}

#[derive(::mqguard::RetryableError)]
#[allow(dead_code)]
enum Failure {
    #[retryable(inherit)]
    Wrapped(OrderError),
    #[retryable(after = 0)]
    Later(::core::option::Option<::core::time::Duration>),
    #[retryable(after = "1s", uncounted)]
    Fixed,
    #[fatal]
    Never,
}

pub(crate) fn main() {
    register::<f>();
    register::<classified>();
    register::<letters>();
}
