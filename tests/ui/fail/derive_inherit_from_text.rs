use mqguard::RetryableError;

#[derive(RetryableError)]
enum ShopError {
    #[retryable(inherit)]
    Lost(String),
}

fn main() {}
