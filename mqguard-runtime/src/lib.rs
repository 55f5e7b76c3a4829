//! The machinery of mqguard. Depend on the crate `mqguard`, which re-exports what is public here.

mod backoff;
pub mod broker;
mod consumer;
mod dead_letter;
mod event;
#[cfg(all(fuzzing, feature = "rabbitmq"))]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod health;
pub mod idempotency;
mod keys;
mod publish;
mod retry;
mod stop;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(any(feature = "rabbitmq", feature = "redis", feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod tls;
mod wire;

pub use broker::{BrokerError, DeclareMode, HeaderValue, Headers, MemoryBroker, Message, Properties, PublishError, QueueType};
pub use consumer::{
    Attempt, BusinessKey, Consumer, ConsumerError, ConsumerSpec, Context, DecodeError, Effects, ErrorText, Extract, Failure,
    Fallible, MissingState, Origin, Outcome, Payload, Precheck, PrecheckFn, PrecheckOutcome, PrecheckParams, Raw, RunError,
    State, States,
};
pub use dead_letter::{DeadLetter, Reason};
pub use event::{Event, EventKind};
pub use guard::{ConfigError, Error, Guard, Result, Running};
pub use health::{Health, Status};
pub use idempotency::MemoryStore;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use idempotency::Tx;
pub use publish::{Draft, EncodeError, Publisher};
pub use retry::{
    Backoff, Classified, FailedAttempt, LONGEST_DELAY, Retry, RetryAfter, RetryPolicy, RetryableError, WrappedError,
};

/// The version of sqlx that [`Tx`] and the stores are of: a handler's queries need the same.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use sqlx;

/// What the macros write. Not for use by hand: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::broker::{ExchangeKind, QueueType};
    pub use crate::consumer::{
        BindingSpec, Consumer, ConsumerSpec, Context, DEFAULT_DEAD_LETTER_EXCHANGE, DeadLetterSpec, Extract, Failure, FaultRule,
        IdempotentSpec, IdentityRule, MissingId, MissingState, OnStoreDown, PrecheckOf, Role, States, business_key, missing,
    };
    pub use crate::idempotency::Mode;
    pub use crate::retry::{Backoff, Retry, RetryPolicy, RetryableError, WrappedError, after, later};
    pub use std::time::Duration;

    pub mod keys {
        pub use crate::keys::*;
    }
}
