#![no_implicit_prelude]
#![deny(warnings)]

#[derive(::serde::Deserialize)]
struct Order {
    order_id: u64,
}

#[derive(::mqguard::RetryableError, ::core::fmt::Debug)]
#[retryable]
enum OrderError {
    #[fatal]
    Wrong,
    Late,
}

impl ::core::fmt::Display for OrderError {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.write_str("failed")
    }
}

impl ::core::error::Error for OrderError {}

#[::mqguard::consumer(
    queue = "q",
    dlq = "d",
    retry(max = 3),
    idempotent(store = "memory", key = "order_id"),
    precheck = wanted,
    prefetch = 10,
    concurrency = 2,
)]
async fn f(order: Order, _cx: ::mqguard::Context) -> ::core::result::Result<(), OrderError> {
    ::core::result::Result::Err(if order.order_id == 0 { OrderError::Wrong } else { OrderError::Late })
}

async fn wanted(_order: &Order) -> ::core::result::Result<::mqguard::Precheck, OrderError> {
    ::core::result::Result::Ok(::mqguard::Precheck::Proceed)
}

#[::mqguard::dead_letter_consumer(queue = "d", of = f)]
async fn letters(_letter: ::mqguard::Raw) {}

fn register<C: ::mqguard::Consumer>() {}

pub(crate) fn main() {
    register::<f>();
    register::<letters>();
}
