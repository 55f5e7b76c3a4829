#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unused_async, clippy::duration_suboptimal_units)]

use std::time::Duration;

use mqguard::{Retry, RetryableError};

#[derive(RetryableError)]
#[retryable]
struct Unit;

#[derive(RetryableError)]
#[fatal]
struct Tuple(#[allow(dead_code)] u8);

#[derive(RetryableError)]
#[retryable(after = wait)]
struct Waiting {
    wait: Duration,
}

#[derive(RetryableError)]
#[retryable(inherit)]
struct Wrapper(std::fmt::Error);

#[derive(RetryableError)]
struct OnField {
    #[allow(dead_code)]
    code: u8,
    #[retryable(inherit)]
    inner: std::fmt::Error,
}

#[derive(RetryableError)]
#[retryable(inherit = inner)]
struct Named {
    #[allow(dead_code)]
    code: u8,
    inner: std::fmt::Error,
}

pub(crate) fn main() {
    assert_eq!(Unit.retry(), Retry::Retryable);
    assert_eq!(Tuple(0).retry(), Retry::Fatal);
    assert_eq!(Waiting { wait: Duration::from_secs(2) }.retry(), Retry::After(Duration::from_secs(2)));
    assert_eq!(Wrapper(std::fmt::Error).retry(), Retry::Fatal);
    assert_eq!(OnField { code: 0, inner: std::fmt::Error }.retry(), Retry::Fatal);
    assert_eq!(Named { code: 0, inner: std::fmt::Error }.retry(), Retry::Fatal);
}
