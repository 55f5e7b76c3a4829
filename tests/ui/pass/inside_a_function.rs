#![deny(warnings)]

use super::shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

pub(crate) fn main() {
    #[consumer(queue = "q")]
    async fn local(_order: Order) -> Result<(), OrderError> {
        Ok(())
    }
    register::<local>();

    let _closure = || {
        #[consumer(queue = "q")]
        async fn deeper(_order: Order) {}
        register::<deeper>();
    };
}
