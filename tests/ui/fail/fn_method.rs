#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError};

struct Service;

impl Service {
    #[consumer(queue = "q")]
    async fn by_reference(&self, _order: Order) -> Result<(), OrderError> {
        Ok(())
    }
}

impl Service {
    #[consumer(queue = "q")]
    async fn boxed(self: Box<Self>, _order: Order) -> Result<(), OrderError> {
        Ok(())
    }
}

fn main() {}
