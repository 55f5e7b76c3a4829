#![deny(warnings)]

use super::shop;

use mqguard::{RetryableError, consumer};
use shop::{Order, register};

struct Service;

impl Service {
    fn register() {
        #[consumer(queue = "q")]
        async fn inside_a_method(_order: Order) {}
        register::<inside_a_method>();
    }
}

trait Registers {
    fn register() {
        #[derive(Debug, thiserror::Error, RetryableError)]
        #[error("late")]
        #[retryable]
        struct Late;

        #[consumer(queue = "q")]
        async fn inside_a_trait(_order: Order) -> Result<(), Late> {
            Err(Late)
        }
        register::<inside_a_trait>();
    }
}

struct Other;

impl Registers for Other {}

const REGISTER: fn() = {
    #[consumer(queue = "q")]
    async fn inside_a_constant(_order: Order) {}
    register::<inside_a_constant>
};

pub(crate) fn main() {
    Service::register();
    Other::register();
    REGISTER();
}
