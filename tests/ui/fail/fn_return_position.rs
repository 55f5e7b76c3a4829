#[path = "../shop.rs"]
mod shop;

use mqguard::{Outcome, consumer};
use shop::{Order, register};

#[consumer(queue = "q")]
async fn f1(_order: Order) -> impl Outcome {}

#[consumer(queue = "q")]
async fn f2(_order: Order) -> ! {
    std::process::exit(1)
}

fn main() {
    register::<f1>();
    register::<f2>();
}
