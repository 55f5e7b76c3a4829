#[path = "../shop.rs"]
mod shop;

use mqguard::RetryableError;

#[derive(RetryableError)]
union ShopError {
    code: u32,
    text: [u8; 4],
}

fn main() {
    let _ = ShopError { code: 1 };
}
