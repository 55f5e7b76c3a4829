#[path = "../shop.rs"]
mod shop;

use mqguard::{State, consumer};
use shop::{Order, OrderError, register};

#[consumer(queue = "q")]
async fn f1<T: Send>(_order: T) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f2<'a>(_order: Order, _name: State<&'a str>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn f3<const N: usize>(_order: [Order; N]) -> Result<(), OrderError>
where
    Order: Send,
{
    Ok(())
}

#[consumer(queue = "q")]
async fn f4(_order: Order) -> Result<(), OrderError>
where
    Order: Send,
{
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
}
