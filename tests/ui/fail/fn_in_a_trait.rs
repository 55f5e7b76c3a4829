#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError};

#[allow(async_fn_in_trait)]
trait Service {
    #[consumer(queue = "order.process")]
    async fn process_order(&self, order: Order) -> Result<(), OrderError>;
}

fn main() {}
