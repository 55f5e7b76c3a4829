#[path = "../shop.rs"]
mod shop;

use mqguard::{Precheck, consumer};
use shop::{Order, OrderError, register};

async fn yes(_order: &Order) -> bool {
    true
}

fn not_async(_order: &Order) -> Precheck {
    Precheck::Proceed
}

async fn owned(_order: Order) -> Precheck {
    Precheck::Proceed
}

#[consumer(queue = "q", precheck = yes)]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", precheck = not_async)]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", precheck = owned)]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", precheck = nowhere)]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
}
