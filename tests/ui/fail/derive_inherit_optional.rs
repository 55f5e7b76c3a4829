use mqguard::RetryableError;

#[derive(RetryableError)]
struct ShopError {
    #[retryable(inherit)]
    source: Option<std::io::Error>,
}

fn main() {}
