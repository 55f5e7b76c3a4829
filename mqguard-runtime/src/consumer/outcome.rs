use std::error::Error;
use std::fmt;

use crate::retry::{Classified, Retry};

type BoxError = Box<dyn Error + Send + Sync>;

/// What a consumer can return: `Result<(), E>` where `E` derives [`RetryableError`](crate::RetryableError), or `()`.
#[diagnostic::on_unimplemented(
    message = "a consumer cannot return `{Self}`",
    label = "not the outcome of a message",
    note = "return `Result<(), E>` where `E` derives `RetryableError`, or nothing when it cannot fail"
)]
pub trait Outcome {
    /// The outcome in one form.
    ///
    /// # Errors
    /// The failure, classified.
    fn into_result(self) -> Result<(), Failure>;
}

#[diagnostic::do_not_recommend]
impl Outcome for () {
    fn into_result(self) -> Result<(), Failure> {
        Ok(())
    }
}

impl<E: Classified + RunError> Outcome for Result<(), E> {
    fn into_result(self) -> Result<(), Failure> {
        self.map_err(|error| {
            let retry = error.retry();
            Failure::of(retry, error)
        })
    }
}

/// An error that a run can end with: an `Error` that can be sent between threads, or what becomes a boxed one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a consumer: it is no `Error + Send + Sync`",
    label = "not an error that can be sent between threads",
    note = "derive `thiserror::Error` for a type of your own, whose fields are `Send + Sync` (`Arc`, not `Rc`); a boxed error is written `Box<dyn std::error::Error + Send + Sync>`"
)]
pub trait RunError: Into<BoxError> {}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> RunError for E {}

/// A run that failed: the error as text, and whether it is worth a retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub(crate) retry: Retry,
    pub(crate) error: ErrorText,
}

/// An error as a dead letter tells it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ErrorText {
    /// The error's type (`orders::OrderError`), or `panic`, `timeout`, `undecodable` and the like.
    pub kind: String,
    /// Its message.
    pub message: String,
    /// The messages of its sources, outermost first.
    pub chain: Vec<String>,
}

impl fmt::Display for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.chain.iter().try_for_each(|source| write!(f, ": {source}"))
    }
}

/// Sources beyond this many are not followed: an error can name itself as its source.
const MAX_CHAIN: usize = 64;

impl Failure {
    /// A failure with the text and the sources of `error`.
    pub fn of<E: Into<BoxError>>(retry: Retry, error: E) -> Self {
        let kind = std::any::type_name::<E>();
        let error: BoxError = error.into();
        let chain = std::iter::successors(error.source(), |&error| error.source());
        let chain = chain.take(MAX_CHAIN).map(ToString::to_string).collect();
        Self { retry, error: ErrorText { kind: kind.to_owned(), message: error.to_string(), chain } }
    }

    /// A failure that has no error value, such as a panic.
    pub fn new(retry: Retry, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { retry, error: ErrorText { kind: kind.into(), message: message.into(), chain: Vec::new() } }
    }

    /// Whether it is worth a retry.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.retry
    }

    /// What went wrong.
    #[must_use]
    pub fn error(&self) -> &ErrorText {
        &self.error
    }
}

#[diagnostic::do_not_recommend]
impl Outcome for Result<(), Failure> {
    fn into_result(self) -> Result<(), Failure> {
        self
    }
}

/// What a function with `classify = ...` can return: `Result<(), E>`.
#[diagnostic::on_unimplemented(
    message = "a consumer with `classify` cannot return `{Self}`",
    label = "no error to classify",
    note = "return `Result<(), E>`: the function of `classify` gets the error"
)]
pub trait Fallible: Sized {
    /// Its error.
    type Error: RunError;

    /// The outcome, classified by `classify` instead of [`RetryableError`](crate::RetryableError).
    ///
    /// # Errors
    /// The failure, classified.
    fn classified(self, classify: impl FnOnce(&Self::Error) -> Retry) -> Result<(), Failure>;
}

#[diagnostic::do_not_recommend]
impl<E: RunError> Fallible for Result<(), E> {
    type Error = E;

    fn classified(self, classify: impl FnOnce(&E) -> Retry) -> Result<(), Failure> {
        self.map_err(|error| Failure::of(classify(&error), error))
    }
}
