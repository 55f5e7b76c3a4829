#[path = "../shop.rs"]
mod shop;

use mqguard::Guard;

mod orders {
    use mqguard::consumer;

    use crate::shop::Order;

    #[consumer(queue = "order.process")]
    async fn process_order(_order: Order) {}
}

fn main() {
    let _ = Guard::from_env().map(|guard| guard.consumer::<orders::process_order>());
}
