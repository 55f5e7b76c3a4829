#[path = "../shop.rs"]
mod shop;

use shop::register;

mod orders {
    #[derive(serde::Deserialize)]
    struct Parcel;

    #[mqguard::consumer(queue = "q")]
    pub async fn f1(parcel: Parcel) {
        let _ = parcel;
    }
}

fn main() {
    register::<orders::f1>();
}
