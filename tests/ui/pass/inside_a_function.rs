#![deny(warnings)]

#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

fn main() {
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
