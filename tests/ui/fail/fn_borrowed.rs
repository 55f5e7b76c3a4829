#[path = "../shop.rs"]
mod shop;

use std::borrow::Cow;

use mqguard::{Context, State, consumer};
use shop::{Db, Order, OrderError, register};

#[consumer(queue = "q")]
async fn f1(_order: &Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f2(_text: &str) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f3(_bytes: &[u8]) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f4(_order: Order, _cx: &Context, _db: &Db, _state: &State<Db>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f5(_text: Cow<'_, str>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f6(_order: &mut Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
    register::<f5>();
    register::<f6>();
}
