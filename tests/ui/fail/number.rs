#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q", dlq = "d", retry(max = 3, factor = 0))]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, factor = 0.5))]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, factor = 101))]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, factor = "2"))]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, factor = two))]
async fn f5(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, factor = -2))]
async fn f6(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, factor = 2f32))]
async fn f7(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, jitter = 20))]
async fn f8(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, jitter = "20%"))]
async fn f9(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, jitter = 20%))]
async fn f10(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, jitter = -0.1))]
async fn f11(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, jitter = 1.5))]
async fn f12(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3, jitter = JITTER))]
async fn f13(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
    register::<f5>();
    register::<f6>();
    register::<f7>();
    register::<f8>();
    register::<f9>();
    register::<f10>();
    register::<f11>();
    register::<f12>();
    register::<f13>();
}
