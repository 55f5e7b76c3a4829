//! The life of one delivery: extract, claim, run, settle.

mod context;
mod courier;
mod declare;
mod error;
mod extract;
mod handler;
mod isolation;
mod key;
mod outcome;
mod payload;
mod pipeline;
mod poison;
mod precheck;
mod quarantine;
mod settle;
mod spec;
mod stuck;
mod topology;
mod transaction;
mod worker;

pub use context::{Attempt, Context, Effects, Origin};
pub use declare::Consumer;
pub use error::ConsumerError;
pub use extract::{Extract, MissingState, State, States, missing};
pub use key::{BusinessKey, business_key};
pub use outcome::{ErrorText, Failure, Fallible, Outcome, RunError};
pub use payload::{DecodeError, Payload, Raw};
pub use precheck::{Precheck, PrecheckFn, PrecheckOf, PrecheckOutcome, PrecheckParams};
pub use spec::{
    BindingSpec, ConsumerSpec, DEFAULT_DEAD_LETTER_EXCHANGE, DeadLetterSpec, FaultRule, IdempotentSpec, IdentityRule, MissingId,
    OnStoreDown, Role,
};

pub(crate) use courier::Courier;
pub(crate) use handler::{Handler, Of};
pub(crate) use isolation::Isolation;
pub(crate) use pipeline::Pipeline;
pub(crate) use worker::Worker;
