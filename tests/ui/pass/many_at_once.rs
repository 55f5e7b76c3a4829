#![deny(warnings)]

use super::shop;

use mqguard::{consumer, dead_letter_consumer};
use shop::{Order, register};

#[consumer(queue = "a", dlq = "dlq")]
async fn first(_order: Order) {}

#[consumer(queue = "b", dlq = "dlq")]
async fn second(_order: Order) {}

// The same function name in another module.
mod other {
    #[mqguard::consumer(queue = "c")]
    pub async fn first(_order: super::Order) {}
}

#[dead_letter_consumer(queue = "dlq", of = other::first)]
async fn letters(_letter: mqguard::Raw) {}

pub(crate) fn main() {
    register::<first>();
    register::<second>();
    register::<other::first>();
    register::<letters>();
}
