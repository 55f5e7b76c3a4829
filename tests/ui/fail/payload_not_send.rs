#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use serde::{Deserialize, Deserializer};
use shop::register;

struct Parcel {
    weight: *const u8,
}

impl<'de> Deserialize<'de> for Parcel {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Ok(Self { weight: std::ptr::null() })
    }
}

#[consumer(queue = "q")]
async fn f1(parcel: Parcel) {
    let _ = parcel.weight;
}

fn main() {
    register::<f1>();
}
