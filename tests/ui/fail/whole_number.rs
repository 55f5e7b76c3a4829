#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

#[consumer(queue = "q", dlq = "d", retry(max = 0))]
async fn f1(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = -1))]
async fn f2(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 1001))]
async fn f3(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3.5))]
async fn f4(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = "3"))]
async fn f5(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = "three"))]
async fn f6(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = three))]
async fn f7(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 3u32))]
async fn f8(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = MAX))]
async fn f9(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 1 + 2))]
async fn f10(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max = 99999999999999999999))]
async fn f11(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", dlq = "d", retry(max))]
async fn f12(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", prefetch = 0)]
async fn f13(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", prefetch = 2001)]
async fn f14(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", concurrency = 0)]
async fn f15(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", concurrency = true)]
async fn f16(_order: Order) -> Result<(), OrderError> {
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
    register::<f14>();
    register::<f15>();
    register::<f16>();
}
