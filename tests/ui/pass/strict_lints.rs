//! Lints that are not on by default.

#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    missing_copy_implementations,
    unreachable_pub,
    unused_qualifications,
    unused_results,
    unused_lifetimes,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    variant_size_differences,
    explicit_outlives_requirements,
    let_underscore_drop,
    meta_variable_misuse,
    unit_bindings,
    rust_2018_idioms,
    nonstandard_style,
    unsafe_code
)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery, clippy::missing_inline_in_public_items, clippy::absolute_paths)]
#![allow(clippy::unused_async, clippy::redundant_pub_crate, tail_expr_drop_order)]

use super::shop;

use mqguard::{Attempt, Context, Precheck, Retry, RetryableError, State, consumer, dead_letter_consumer};
use shop::{Db, Order, OrderError, register};

/// What can fail.
#[derive(Debug, thiserror::Error, RetryableError)]
pub(crate) enum Failure {
    /// Later.
    #[error("later")]
    #[retryable(after = "1m", uncounted)]
    Later,
    /// As the other says.
    #[error("other")]
    #[retryable(inherit)]
    Other(#[from] OrderError),
}

/// Processes.
#[consumer(
    queue = "q",
    dlq = "d",
    retry(max = 3, delay = "1s", factor = 1.5, max_delay = "1m", jitter = 0.1, within = "1h"),
    idempotent(store = "memory", key = "order_id", ttl = "2h"),
    bind(exchange = "x", routing_key = "y"),
    precheck = wanted
)]
pub(crate) async fn process(order: Order, _db: State<Db>, _cx: Context, attempt: Attempt) -> Result<(), Failure> {
    if attempt.is_last() {
        return Err(Failure::Later);
    }
    if order.order_id == 0 { Err(OrderError.into()) } else { Ok(()) }
}

async fn wanted(_order: &Order) -> Precheck {
    Precheck::Proceed
}

/// Classifies.
#[consumer(queue = "q", classify = class)]
async fn classified(_order: Order) -> Result<(), String> {
    Ok(())
}

const fn class(_error: &String) -> Retry {
    Retry::Fatal
}

#[dead_letter_consumer(queue = "d", of = process)]
async fn letters(_letter: mqguard::Raw) {}

pub(crate) fn main() {
    register::<process>();
    register::<classified>();
    register::<letters>();
}
