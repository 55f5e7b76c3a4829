#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unused_async, clippy::duration_suboptimal_units)]
#![allow(dead_code)]

use std::error::Error;

use mqguard::{Retry, RetryableError};

#[derive(Debug, thiserror::Error, RetryableError)]
enum E1<T, const N: usize>
where
    T: Error + Send + Sync + 'static,
{
    #[error("a")]
    #[retryable(inherit)]
    A(#[source] T),
    #[error("b")]
    #[fatal]
    B([u8; N]),
}

#[derive(RetryableError)]
enum E2<T: Error> {
    #[fatal]
    A(T),
}

#[derive(RetryableError)]
enum E3<T = std::io::Error> {
    #[retryable(inherit)]
    A(Box<T>),
    #[retryable]
    B(T),
}

#[derive(RetryableError)]
enum E4<'a> {
    #[fatal]
    A(&'a str),
    #[retryable(inherit)]
    B(&'a std::io::Error),
}

#[derive(RetryableError)]
#[retryable(inherit)]
struct Wrapper<E>(E)
where
    E: Send;

struct NotClassified;

pub(crate) fn main() {
    assert_eq!(E1::<std::fmt::Error, 2>::A(std::fmt::Error).retry(), Retry::Fatal);
    assert_eq!(E1::<std::fmt::Error, 2>::B([0; 2]).retry(), Retry::Fatal);
    assert_eq!(E2::A(std::fmt::Error).retry(), Retry::Fatal);
    assert_eq!(E3::A(Box::new(std::io::Error::other("x"))).retry(), Retry::Retryable);
    assert_eq!(E4::B(&std::io::Error::other("x")).retry(), Retry::Retryable);
    assert_eq!(Wrapper(std::fmt::Error).retry(), Retry::Fatal);
    let _ = E3::B(NotClassified);
}
