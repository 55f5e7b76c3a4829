#[path = "../shop.rs"]
mod shop;

use mqguard::{Retry, consumer};
use shop::{Order, OrderError, register};

fn fatal(_error: &OrderError) -> Retry {
    Retry::Fatal
}

#[consumer(queue = "q", classify = fatal)]
async fn f1(_order: Order) -> u32 {
    0
}

fn main() {
    register::<f1>();
}
