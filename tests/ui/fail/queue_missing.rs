#[path = "../shop.rs"]
mod shop;

use mqguard::{Raw, consumer, dead_letter_consumer};
use shop::{Order, OrderError, register};

#[consumer]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer()]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(dlq = "d")]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(dlq = "d", retry(max = 3))]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}
#[dead_letter_consumer(prefetch = 8)]
async fn letters(_letter: Raw) {}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
    register::<letters>();
}
