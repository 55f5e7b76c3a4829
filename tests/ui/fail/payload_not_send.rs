#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::register;

#[derive(serde::Deserialize)]
struct Parcel {
    weight: std::marker::PhantomData<*const u8>,
}

#[consumer(queue = "q")]
async fn f1(parcel: Parcel) {
    let _ = parcel.weight;
}

fn main() {
    register::<f1>();
}
