#![deny(warnings, clippy::pedantic)]

#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "order.process", dlq = "dlq.order.process")]
async fn process_order(_order: Order) {}

mod letters {
    use mqguard::{Raw, dead_letter_consumer};

    #[dead_letter_consumer(queue = "dlq.order.process", of = super::process_order, prefetch = 4, concurrency = 2, timeout = "10s", crate = mqguard)]
    pub async fn record(_letter: Raw) {}

    #[dead_letter_consumer(queue = "dlq.other")]
    pub(super) async fn of_nobody(_letter: Raw) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }
}

fn main() {
    register::<process_order>();
    register::<letters::record>();
    register::<letters::of_nobody>();
}
