use mqguard::{Retry, RetryableError};

#[derive(RetryableError)]
#[fatal]
struct ShopError;

impl RetryableError for ShopError {
    fn retry(&self) -> Retry {
        Retry::Fatal
    }
}

fn main() {}
