//! The machinery of mqguard. Depend on the crate `mqguard`, which re-exports what is public here.

pub mod broker;
mod consumer;
pub mod idempotency;
mod retry;

pub use broker::{HeaderValue, Headers, Message, Properties, QueueType};
pub use consumer::{
    Attempt, BusinessKey, Consumer, ConsumerSpec, Context, DecodeError, Effects, ErrorText, Extract, Failure, MissingState,
    Origin, Outcome, Payload, Precheck, PrecheckOutcome, Raw, State, States,
};
pub use retry::{Backoff, Retry, RetryAfter, RetryPolicy, RetryableError};

/// What the macros write. Not for use by hand: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::broker::{ExchangeKind, QueueType};
    pub use crate::consumer::{
        BindingSpec, Consumer, ConsumerSpec, Context, DEFAULT_DEAD_LETTER_EXCHANGE, DeadLetterSpec, Extract, Failure, FaultRule,
        IdempotentSpec, IdentityRule, MissingId, MissingState, NotRun, Role, States, business_key, classified, precheck,
    };
    pub use crate::retry::{Backoff, Retry, RetryPolicy, RetryableError, after, later};
    pub use std::time::Duration;
}
