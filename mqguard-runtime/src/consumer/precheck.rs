use std::error::Error;

use super::declare::NotRun;
use super::outcome::Failure;
use crate::retry::RetryableError;

/// What a `precheck` says before each run of the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precheck {
    /// Run the handler.
    Proceed,
    /// There is nothing to do: the message counts as processed.
    Skip,
}

/// What a precheck function can return: [`Precheck`], or `Result<Precheck, E>` where `E` derives `RetryableError`.
#[diagnostic::on_unimplemented(
    message = "a precheck cannot return `{Self}`",
    label = "not the outcome of a precheck",
    note = "return `Precheck`, or `Result<Precheck, E>` where `E` derives `RetryableError`"
)]
pub trait PrecheckOutcome {
    /// The outcome in one form.
    ///
    /// # Errors
    /// The failure, classified.
    fn into_precheck(self) -> Result<Precheck, Failure>;
}

impl PrecheckOutcome for Precheck {
    fn into_precheck(self) -> Result<Precheck, Failure> {
        Ok(self)
    }
}

impl<E: RetryableError + Into<Box<dyn Error + Send + Sync>>> PrecheckOutcome for Result<Precheck, E> {
    fn into_precheck(self) -> Result<Precheck, Failure> {
        self.map_err(|error| {
            let retry = error.retry();
            Failure::of(retry, error)
        })
    }
}

impl PrecheckOutcome for Result<Precheck, Failure> {
    fn into_precheck(self) -> Self {
        self
    }
}

/// Ends the run when a precheck says so.
///
/// # Errors
/// [`NotRun::Skipped`], or the failure of the precheck.
pub fn precheck(outcome: impl PrecheckOutcome) -> Result<(), NotRun> {
    match outcome.into_precheck()? {
        Precheck::Proceed => Ok(()),
        Precheck::Skip => Err(NotRun::Skipped),
    }
}
