#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unused_async, clippy::duration_suboptimal_units)]

use std::time::{Duration, SystemTime};

use mqguard::{Retry, RetryableError};

#[derive(Debug, thiserror::Error, RetryableError)]
enum OrderError {
    #[error("inventory unreachable")]
    #[retryable]
    Inventory(#[source] std::io::Error),
    #[error("throttled")]
    #[retryable(after = retry_after)]
    Throttled { retry_after: Duration },
    #[error("closed")]
    #[retryable(after = self.opens, uncounted)]
    Closed { opens: Option<SystemTime> },
    #[error("tuple")]
    #[retryable(after = 1)]
    Tuple(u8, Option<Duration>),
    #[error("fixed")]
    #[retryable(after = "1h30m")]
    Fixed,
    #[error("fixed, uncounted")]
    #[retryable(after = "30s", uncounted)]
    FixedUncounted(u8),
    #[error(transparent)]
    #[retryable(inherit)]
    Io(#[from] std::io::Error),
    #[error("marked")]
    #[retryable(inherit)]
    Marked {
        code: u8,
        #[source]
        cause: std::fmt::Error,
    },
    #[error("named")]
    #[retryable(inherit)]
    Named { code: u8, source: std::fmt::Error },
    #[error("chosen")]
    #[retryable(inherit = inner)]
    Chosen { code: u8, inner: Box<OrderError> },
    #[error("chosen by number")]
    #[retryable(inherit = 1)]
    ByNumber(u8, std::fmt::Error),
    #[error("order {0} already shipped")]
    #[fatal]
    AlreadyShipped(u64),
    #[error("unit")]
    #[fatal]
    Unit,
}

#[derive(RetryableError)]
#[retryable]
enum ByDefault {
    Late,
    #[fatal]
    Wrong,
    #[retryable(after = "1s")]
    Soon,
}

#[derive(RetryableError)]
#[fatal]
enum FatalByDefault {
    Wrong(#[allow(dead_code)] u8),
    #[retryable]
    Late,
}

#[derive(RetryableError)]
enum Nothing {}

pub(crate) fn main() {
    assert_eq!(OrderError::Throttled { retry_after: Duration::from_secs(7) }.retry(), Retry::After(Duration::from_secs(7)));
    assert_eq!(OrderError::Closed { opens: None }.retry(), Retry::Retryable);
    assert!(matches!(OrderError::Closed { opens: Some(SystemTime::now() + Duration::from_secs(60)) }.retry(), Retry::Later(_)));
    assert_eq!(OrderError::Tuple(0, Some(Duration::from_secs(1))).retry(), Retry::After(Duration::from_secs(1)));
    assert_eq!(OrderError::Fixed.retry(), Retry::After(Duration::from_secs(5400)));
    assert_eq!(OrderError::FixedUncounted(0).retry(), Retry::Later(Duration::from_secs(30)));
    assert_eq!(OrderError::Inventory(std::io::ErrorKind::InvalidData.into()).retry(), Retry::Retryable);
    assert_eq!(OrderError::from(std::io::Error::from(std::io::ErrorKind::InvalidData)).retry(), Retry::Fatal);
    assert_eq!(OrderError::Marked { code: 0, cause: std::fmt::Error }.retry(), Retry::Fatal);
    assert_eq!(OrderError::Named { code: 0, source: std::fmt::Error }.retry(), Retry::Fatal);
    let inner = Box::new(OrderError::Chosen { code: 0, inner: Box::new(OrderError::Fixed) });
    assert_eq!(OrderError::Chosen { code: 0, inner }.retry(), Retry::After(Duration::from_secs(5400)));
    assert_eq!(OrderError::ByNumber(0, std::fmt::Error).retry(), Retry::Fatal);
    assert_eq!(OrderError::AlreadyShipped(1).retry(), Retry::Fatal);
    assert_eq!(OrderError::Unit.retry(), Retry::Fatal);
    assert_eq!(ByDefault::Late.retry(), Retry::Retryable);
    assert_eq!(ByDefault::Wrong.retry(), Retry::Fatal);
    assert_eq!(ByDefault::Soon.retry(), Retry::After(Duration::from_secs(1)));
    assert_eq!(FatalByDefault::Wrong(1).retry(), Retry::Fatal);
    assert_eq!(FatalByDefault::Late.retry(), Retry::Retryable);
    let _ = |nothing: Nothing| nothing.retry();
}
