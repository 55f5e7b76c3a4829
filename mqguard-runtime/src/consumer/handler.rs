use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use super::context::Context;
use super::declare::Consumer;
use super::extract::{MissingState, States};
use super::outcome::{Failure, Outcome};
use super::payload::{DecodeError, Payload};
use super::precheck::{Precheck, PrecheckOf};
use crate::broker::Message;

/// A consumer without its types: all that the pipeline needs of it. What is generic ends here.
pub(crate) trait Handler: Send + Sync {
    /// Reads a message.
    fn prepare(&self, message: &Message) -> Result<Prepared, DecodeError>;

    /// The states that the parameters need and that are not registered.
    fn missing(&self, states: &States) -> Vec<MissingState>;
}

/// A decoded message, ready to run.
pub(crate) struct Prepared {
    pub(crate) business_key: Option<String>,
    pub(crate) run: Box<dyn FnOnce(Context) -> Run + Send>,
}

pub(crate) type Run = Pin<Box<dyn Future<Output = Result<Ran, Failure>> + Send>>;

/// How a run ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    Done,
    Skipped,
}

pub(crate) struct Of<C>(PhantomData<fn() -> C>);

impl<C> Of<C> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<C: Consumer> Handler for Of<C> {
    fn prepare(&self, message: &Message) -> Result<Prepared, DecodeError> {
        let message = C::Message::decode(message)?;
        let business_key = C::business_key(&message);
        Ok(Prepared { business_key, run: Box::new(|cx| Box::pin(run::<C>(message, cx))) })
    }

    fn missing(&self, states: &States) -> Vec<MissingState> {
        let mut missing = C::missing(states);
        missing.extend(C::precheck().missing(states));
        missing
    }
}

async fn run<C: Consumer>(message: C::Message, cx: Context) -> Result<Ran, Failure> {
    if C::precheck().check(&message, &cx).await? == Precheck::Skip {
        return Ok(Ran::Skipped);
    }
    C::run(message, cx).await?.into_result().map(|()| Ran::Done)
}
