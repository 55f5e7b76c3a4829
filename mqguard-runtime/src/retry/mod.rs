//! When a failed message is tried again: the policy's arithmetic, and what is worth a retry at all.

mod classify;
mod foreign;
mod policy;

pub use classify::{Retry, RetryAfter, RetryableError, after, later};
pub use policy::{Backoff, RetryPolicy};
