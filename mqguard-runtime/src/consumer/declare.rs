use std::future::Future;

use super::context::Context;
use super::extract::{MissingState, States};
use super::outcome::{Failure, Outcome};
use super::payload::Payload;
use super::precheck::{NoPrecheck, PrecheckOf};
use super::spec::ConsumerSpec;

/// A declared consumer. `#[consumer]` and `#[dead_letter_consumer]` implement it; nobody needs to do so by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a consumer",
    label = "not an annotated function",
    note = "annotate the function with `#[consumer(queue = \"...\")]` and name it here: `.consumer::<process_order>()`"
)]
pub trait Consumer: 'static {
    /// What the attribute says.
    const SPEC: ConsumerSpec;
    /// The function's first parameter.
    type Message: Payload;
    /// What the function returns.
    type Output: Outcome;

    /// Takes what the parameters need from `cx` and runs the function.
    fn run(message: Self::Message, cx: Context) -> impl Future<Output = Result<Self::Output, Failure>> + Send;

    /// The business key of a message; `None` when it has none.
    #[must_use]
    fn business_key(message: &Self::Message) -> Option<String> {
        let _ = message;
        None
    }

    /// What runs before the function.
    fn precheck() -> impl PrecheckOf<Self::Message> {
        NoPrecheck
    }

    /// The states that the parameters need and that are not registered.
    #[must_use]
    fn missing(states: &States) -> Vec<MissingState> {
        let _ = states;
        Vec::new()
    }
}
