#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{OrderError, register};

struct Parcel {
    weight: u64,
}

#[consumer(queue = "order.process")]
async fn process_order(parcel: Parcel) -> Result<(), OrderError> {
    if parcel.weight == 0 { Err(OrderError) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}
