#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, register};

#[derive(Debug, thiserror::Error)]
#[error("lost")]
struct Lost;

#[consumer(queue = "q")]
async fn f1(_order: Order) -> Result<(), Lost> {
    Err(Lost)
}

#[consumer(queue = "q")]
async fn f2(_order: Order) -> Result<(), String> {
    Ok(())
}

#[derive(mqguard::RetryableError)]
#[fatal]
struct NotAnError;

#[consumer(queue = "q")]
async fn f3(_order: Order) -> Result<(), NotAnError> {
    Err(NotAnError)
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
}
