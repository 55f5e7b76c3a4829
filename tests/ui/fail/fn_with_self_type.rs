#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError};

struct Service;

impl Service {
    #[consumer(queue = "q")]
    async fn process(_service: Self, _order: Order) -> Result<(), OrderError> {
        Ok(())
    }
}

fn main() {}
