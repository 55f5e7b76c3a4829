#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unused_async, clippy::duration_suboptimal_units)]

use super::shop;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "order.process", dlq = "dlq.order.process")]
async fn process_order(_order: Order) {}

mod letters {
    use mqguard::{DeadLetter, Raw, State, dead_letter_consumer};

    #[dead_letter_consumer(queue = "dlq.order.process", of = super::process_order, prefetch = 4, concurrency = 2, timeout = "10s", crate = mqguard)]
    pub async fn record(_letter: DeadLetter<super::Order>, State(_db): State<super::shop::Db>) {}

    #[dead_letter_consumer(queue = "dlq.other")]
    pub(super) async fn of_nobody(_letter: Raw) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }
}

pub(crate) fn main() {
    register::<process_order>();
    register::<letters::record>();
    register::<letters::of_nobody>();
}
