#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::Order;

#[consumer(queue = "q")]
pub struct Service;

#[consumer(queue = "q")]
impl Service {
    async fn process(_order: Order) {}
}

#[consumer(queue = "q")]
mod orders {}

#[consumer(queue = "q")]
const QUEUE: &str = "q";

fn main() {}
