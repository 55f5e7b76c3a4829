#![deny(warnings, clippy::pedantic)]
#![allow(dead_code)]

use super::shop;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mqguard::{Retry, RetryableError};
use shop::OrderError;

#[derive(RetryableError)]
enum Never {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, RetryableError)]
#[repr(u8)]
#[non_exhaustive]
enum WithNumbers {
    #[retryable]
    Late = 3,
    #[fatal]
    Wrong = 7,
}

// A default, and the exceptions from it.
#[derive(RetryableError)]
#[retryable(after = "10s")]
enum Mostly {
    Slow,
    Slower(u8),
    #[fatal]
    Wrong {
        text: String,
    },
    #[retryable(after = at)]
    Scheduled {
        at: SystemTime,
    },
    #[retryable]
    ByPolicy(),
}

#[derive(RetryableError)]
enum Sources {
    #[retryable(inherit)]
    Boxed(Box<OrderError>),
    #[retryable(inherit)]
    Shared(Arc<OrderError>),
    #[retryable(inherit)]
    Any(Box<dyn Error>),
    #[retryable(inherit)]
    AnySent(Box<dyn Error + Send>),
    #[retryable(inherit)]
    AnyShared(Box<dyn Error + Send + Sync>),
    #[retryable(inherit = cause)]
    Named { cause: std::io::Error, source: OrderError },
    #[retryable(inherit = 1)]
    Numbered(u8, Mostly),
    #[retryable(inherit)]
    Deep(Box<Sources>),
}

pub(crate) fn main() {
    assert_eq!(WithNumbers::Late.retry(), Retry::Retryable);
    assert_eq!(Mostly::Slower(1).retry(), Retry::After(Duration::from_secs(10)));
    assert_eq!(Mostly::Wrong { text: String::new() }.retry(), Retry::Fatal);
    assert_eq!(Mostly::ByPolicy().retry(), Retry::Retryable);
    let refused = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    assert_eq!(Sources::Deep(Box::new(Sources::Any(refused().into()))).retry(), Retry::Fatal);
    assert_eq!(Sources::Numbered(0, Mostly::Slow).retry(), Retry::After(Duration::from_secs(10)));
    assert_eq!(Sources::Named { cause: refused(), source: OrderError }.retry(), Retry::Fatal);
}
