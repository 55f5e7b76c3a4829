#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{OrderError, register};

struct Parcel {
    weight: u32,
}

#[consumer(queue = "q")]
async fn f1(parcel: Parcel) -> Result<(), OrderError> {
    let _ = parcel.weight;
    Ok(())
}

fn main() {
    register::<f1>();
}
