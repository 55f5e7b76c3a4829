//! What the cases share.
#![allow(dead_code, clippy::struct_field_names)]

use mqguard::RetryableError;

#[derive(Debug, serde::Deserialize)]
pub struct Order {
    pub order_id: u64,
    pub price: f64,
    pub customer: Customer,
}

#[derive(Debug, serde::Deserialize)]
pub struct Customer {
    pub id: String,
}

#[derive(Debug, thiserror::Error, RetryableError)]
#[error("no stock")]
#[retryable]
pub struct OrderError;

pub struct Db;

/// Stands for `Guard::consumer`.
pub fn register<C: mqguard::Consumer>() {}
