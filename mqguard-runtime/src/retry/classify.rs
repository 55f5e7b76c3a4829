use std::time::{Duration, SystemTime};

/// Whether a failure is worth another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// By the retry policy.
    Retryable,
    /// After this long instead of the policy's delay; counted against `max`.
    After(Duration),
    /// After this long (at least 100 ms), without spending an attempt. Bounded by the policy's `within`; without one it is counted.
    Later(Duration),
    /// Never: dead letter at once.
    Fatal,
}

/// An error that says whether it is worth a retry. Derive it: `#[derive(RetryableError)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which of its failures are worth a retry",
    label = "not a `RetryableError`",
    note = "if `{Self}` is yours, add `#[derive(RetryableError)]` to it, and `#[retryable]` or `#[fatal]` on it or on each variant of an enum",
    note = "if it is another crate's, write `classify = worth_a_retry` in the attribute, with `fn worth_a_retry(error: &{Self}) -> Retry`"
)]
pub trait RetryableError {
    /// Whether this failure is worth another run.
    fn retry(&self) -> Retry;
}

/// A [`RetryableError`], asked for by a bound: what is said of an error that is none then lists no other that is one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which of its failures are worth a retry",
    label = "not a `RetryableError`",
    note = "if `{Self}` is yours, add `#[derive(RetryableError)]` to it, and `#[retryable]` or `#[fatal]` on it or on each variant of an enum",
    note = "if it is another crate's, write `classify = worth_a_retry` in the attribute, with `fn worth_a_retry(error: &{Self}) -> Retry`"
)]
pub trait Classified: RetryableError {}

#[diagnostic::do_not_recommend]
impl<E: RetryableError + ?Sized> Classified for E {}

/// An error that another one wraps, for `#[retryable(inherit)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which of its failures are worth a retry",
    label = "not a `RetryableError`",
    note = "if `{Self}` is yours, add `#[derive(RetryableError)]` to it, and `#[retryable]` or `#[fatal]` on it or on each variant of an enum",
    note = "else say it where it is wrapped: write `#[retryable]` or `#[fatal]` in place of `#[retryable(inherit)]`"
)]
pub trait WrappedError {
    /// What it says.
    fn ask(&self) -> Retry;
}

#[diagnostic::do_not_recommend]
impl<E: RetryableError + ?Sized> WrappedError for E {
    fn ask(&self) -> Retry {
        self.retry()
    }
}

/// A field that says when to try again, for `#[retryable(after = field)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how long to wait",
    label = "not a duration",
    note = "`after` takes a field of type `Duration`, `SystemTime`, or an `Option` of one"
)]
pub trait RetryAfter {
    /// How long to wait from now; `None`: as long as the policy says.
    fn retry_after(&self) -> Option<Duration>;
}

#[diagnostic::do_not_recommend]
impl RetryAfter for Duration {
    fn retry_after(&self) -> Option<Duration> {
        Some(*self)
    }
}

#[diagnostic::do_not_recommend]
impl RetryAfter for SystemTime {
    fn retry_after(&self) -> Option<Duration> {
        Some(self.duration_since(SystemTime::now()).unwrap_or_default())
    }
}

impl<T: RetryAfter> RetryAfter for Option<T> {
    fn retry_after(&self) -> Option<Duration> {
        self.as_ref()?.retry_after()
    }
}

/// The class of a `#[retryable(after = field)]`.
pub fn after(field: &impl RetryAfter) -> Retry {
    field.retry_after().map_or(Retry::Retryable, Retry::After)
}

/// The class of a `#[retryable(after = field, uncounted)]`.
pub fn later(field: &impl RetryAfter) -> Retry {
    field.retry_after().map_or(Retry::Retryable, Retry::Later)
}
