//! Message consumers that are correct by declaration.
//!
//! An attribute on a plain `async fn` gives it delayed retries, a dead-letter queue and idempotency:
//!
//! ```
//! use mqguard::{Guard, RetryableError, State, consumer};
//! use tokio::sync::mpsc::UnboundedSender;
//!
//! #[derive(serde::Deserialize)]
//! struct Order {
//!     order_id: u64,
//! }
//!
//! #[derive(Debug, thiserror::Error, RetryableError)]
//! enum OrderError {
//!     #[error("the warehouse does not answer")]
//!     #[retryable]
//!     Warehouse(#[from] std::io::Error),
//!     #[error("order {0} was shipped before")]
//!     #[fatal]
//!     AlreadyShipped(u64),
//! }
//!
//! #[consumer(
//!     queue = "order.process",
//!     retry(max = 3, delay = "5s", factor = 2),
//!     dlq = "dlq.order.process.fail",
//!     idempotent(store = "redis", key = "order_id", identity = "key"),
//! )]
//! async fn process_order(order: Order, shipped: State<UnboundedSender<u64>>) -> Result<(), OrderError> {
//!     shipped.send(order.order_id).map_err(|_| OrderError::AlreadyShipped(order.order_id))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The embedded broker, unless `MQGUARD_BROKER` names one.
//! let (shipped, mut orders) = tokio::sync::mpsc::unbounded_channel::<u64>();
//! let running = Guard::from_env()?.consumer::<process_order>().state(shipped).start().await?;
//! running.publisher().json(&serde_json::json!({ "order_id": 7 }))?.to_queue("order.process").await?;
//! assert_eq!(orders.recv().await, Some(7));
//! running.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! - [`macro@consumer`] is the attribute, with all its keys; [`macro@dead_letter_consumer`] is the one for dead letters.
//! - [`macro@RetryableError`] says which errors are worth a retry.
//! - [`Guard`] registers consumers and runs them; [`Publisher`] publishes.
//! - A handler's further parameters are [`State`], [`Publisher`], [`Context`], [`Headers`], [`Attempt`], [`Effects`], or anything that
//!   implements [`Extract`]; with the features `mysql`, `postgres` and `sqlite` also `Tx`, a transaction that is committed with the record of
//!   success.
//! - [`broker`] and [`idempotency`] are for those who write a broker or a store of their own, and for tests.
//! - With the feature `testing`, `mqguard::testing` puts consumers through every crash.

pub use mqguard_macros::{RetryableError, consumer, dead_letter_consumer};
pub use mqguard_runtime::*;

/// The pages of documentation: their programs are compiled, and run where they end.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../docs/consumer.md")]
    mod consumer {}
    #[doc = include_str!("../docs/attribute.md")]
    mod attribute {}
    #[doc = include_str!("../docs/expansion.md")]
    mod expansion {}
    #[doc = include_str!("../docs/diagnostics.md")]
    mod diagnostics {}
    #[doc = include_str!("../docs/retry.md")]
    mod retry {}
    #[doc = include_str!("../docs/dead-letter.md")]
    mod dead_letter {}
    #[doc = include_str!("../docs/idempotency.md")]
    mod idempotency {}
    #[cfg(all(feature = "postgres", feature = "sqlite"))]
    #[doc = include_str!("../docs/databases.md")]
    mod databases {}
    #[doc = include_str!("../docs/broker.md")]
    mod broker {}
    #[cfg(feature = "testing")]
    #[doc = include_str!("../docs/testing.md")]
    mod testing {}
}
