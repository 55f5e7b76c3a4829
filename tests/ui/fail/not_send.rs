#[path = "../shop.rs"]
mod shop;

use std::rc::Rc;
use std::sync::Mutex;

use mqguard::{State, consumer};
use shop::{Order, OrderError, register};

async fn io() {}

#[consumer(queue = "q")]
async fn f1(order: Order) -> Result<(), OrderError> {
    let shared = Rc::new(order);
    io().await;
    drop(shared);
    Ok(())
}

#[consumer(queue = "q")]
async fn f2(_order: Order, State(total): State<Mutex<u64>>) -> Result<(), OrderError> {
    let mut total = total.lock().unwrap();
    io().await;
    *total += 1;
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
}
