//! When a failed message is tried again: the policy's arithmetic, what is worth a retry at all, and where a message waits.

mod classify;
pub(crate) mod copy;
mod decide;
mod foreign;
pub(crate) mod hold;
mod policy;
mod progress;

pub use classify::{Classified, Retry, RetryAfter, RetryableError, WrappedError, after, later};
pub(crate) use decide::{Next, decide};
pub use policy::{Backoff, LONGEST_DELAY, RetryPolicy};
pub use progress::FailedAttempt;
pub(crate) use progress::{LONGEST_KIND, Progress, cut_text, failures, rfc3339, whole_millis};
