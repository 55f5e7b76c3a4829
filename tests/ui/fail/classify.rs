#[path = "../shop.rs"]
mod shop;

use mqguard::{Retry, consumer};
use shop::{Order, OrderError, register};

fn to_bool(_error: &OrderError) -> bool {
    true
}

fn of_text(_error: &String) -> Retry {
    Retry::Fatal
}

#[consumer(queue = "q", classify = to_bool)]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", classify = of_text)]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", classify = nowhere)]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn fatal(_error: &OrderError) -> Retry {
    Retry::Fatal
}

#[consumer(queue = "q", classify = fatal)]
async fn returns_nothing(_order: Order) {}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<returns_nothing>();
}
