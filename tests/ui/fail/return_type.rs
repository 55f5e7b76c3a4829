#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q")]
async fn f1(_order: Order) -> u32 {
    0
}

#[consumer(queue = "q")]
async fn f2(_order: Order) -> Result<u32, OrderError> {
    Ok(0)
}

#[consumer(queue = "q")]
async fn f3(_order: Order) -> Option<()> {
    None
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
}
