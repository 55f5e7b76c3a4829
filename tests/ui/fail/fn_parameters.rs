#[path = "../shop.rs"]
mod shop;

use mqguard::{State, consumer};
use shop::{Db, Order, OrderError, register};

#[consumer(queue = "q")]
async fn f1() -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f2(_order: impl Send) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f3(_order: Order, _db: impl Send) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f4(_order: Order, #[cfg(unix)] _db: State<Db>) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
}
