#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{OrderError, register};

#[derive(Debug, Clone)]
struct Parcel {
    weight: u64,
}

#[consumer(queue = "order.process")]
async fn process_order(_parcel: Parcel) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
