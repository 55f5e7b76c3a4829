#![deny(unused)]
#![allow(non_camel_case_types)]

use super::shop;

use std::time::Duration;

use mqguard::{Precheck, RetryableError, consumer};
use serde::Deserialize;
use shop::register;

#[derive(Debug, Deserialize)]
struct Event {
    r#type: String,
    r#match: Inner,
}

#[derive(Debug, Deserialize)]
struct Inner {
    r#in: u8,
}

#[consumer(queue = "q", idempotent(store = "memory", key = "type"))]
async fn r#type(r#ref: Event) {
    let _ = (r#ref.r#type, r#ref.r#match.r#in);
}

#[consumer(queue = "q", idempotent(store = "memory", key = "match.in"), precheck = r#async)]
async fn r#move(r#ref: Event) {
    let _ = r#ref;
}

async fn r#async(_: &Event) -> Precheck {
    Precheck::Proceed
}

#[derive(Debug, RetryableError)]
#[allow(dead_code)]
enum Failure {
    #[retryable(after = r#loop)]
    Bad { r#loop: Duration, r#match: u8 },
    #[fatal]
    Type(u8),
    #[retryable]
    r#async,
}

pub(crate) fn main() {
    register::<r#type>();
    register::<r#move>();
    let _ = Failure::r#async;
}
