#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unused_async)]

use super::shop;

use shop::register;

mod orders {
    mod inner {
        use super::super::shop::Order;

        #[mqguard::consumer(queue = "q")]
        pub(crate) async fn of_the_crate(_order: Order) {}

        #[mqguard::consumer(queue = "q")]
        pub(in super::super) async fn of_a_parent(_order: Order) {}

        #[mqguard::consumer(queue = "q")]
        pub async fn of_all(_order: Order) {}
    }
    pub(super) use inner::of_a_parent;
    pub use inner::of_all as of_everyone;
    pub(crate) use inner::of_the_crate;
}

use orders::{of_a_parent, of_everyone};

#[mqguard::dead_letter_consumer(queue = "dead", of = orders::of_the_crate)]
async fn letters(_letter: mqguard::Raw) {}

pub(crate) fn main() {
    register::<orders::of_the_crate>();
    register::<of_everyone>();
    register::<of_a_parent>();
    register::<letters>();
}
