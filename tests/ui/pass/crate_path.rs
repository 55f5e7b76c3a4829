#![deny(warnings)]

use super::shop;

use shop::{Order, register};

/// As a company does that wraps what its teams use.
mod company {
    pub mod messaging {
        pub use mqguard;
    }
    pub use mqguard as mq;
}

#[company::mq::consumer(queue = "q", crate = self::company::mq)]
async fn one(_order: Order) {}

#[company::messaging::mqguard::consumer(queue = "q", idempotent(store = "memory", key = "order_id"), crate = company::messaging::mqguard)]
async fn two(_order: Order, _cx: mqguard::Context) {}

#[company::mq::dead_letter_consumer(queue = "q", of = one, crate = ::mqguard)]
async fn three(_letter: company::mq::Raw) {}

#[derive(company::mq::RetryableError)]
#[retryable(crate = company::mq)]
#[allow(dead_code)]
enum Failure {
    #[retryable]
    Late,
    #[fatal]
    Wrong,
}

#[derive(company::mq::RetryableError)]
#[retryable(crate = company::mq)]
#[fatal]
#[allow(dead_code)]
struct Alone;

pub(crate) fn main() {
    register::<one>();
    register::<two>();
    register::<three>();
}
