//! Consumers of a library.

#![deny(warnings, missing_docs, unused_qualifications, clippy::pedantic)]
#![allow(clippy::unused_async)]

use super::shop;

/// Orders.
pub mod orders {
    /// An order.
    #[derive(serde::Deserialize)]
    pub struct Order;

    /// Processes an order.
    ///
    /// See [`process`](fn@process).
    #[mqguard::consumer(queue = "q")]
    pub async fn process(order: Order) {
        let _ = order;
    }

    #[mqguard::consumer(queue = "q")]
    pub(crate) async fn of_the_crate(order: Order) {
        let _ = order;
    }

    #[mqguard::consumer(queue = "q")]
    pub(in crate::visibility_and_docs::orders) async fn of_the_module(order: Order) {
        let _ = order;
    }

    #[mqguard::consumer(queue = "q")]
    #[doc(hidden)]
    #[inline]
    #[must_use = "x"]
    pub async fn with_attributes(order: Order) {
        let _ = order;
    }

    /// Registers what is private here.
    pub fn register() {
        super::shop::register::<of_the_module>();
        super::shop::register::<with_attributes>();
    }
}

pub(crate) fn main() {
    shop::register::<orders::process>();
    shop::register::<orders::of_the_crate>();
    orders::register();
}
