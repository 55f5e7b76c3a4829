use mqguard::RetryableError;

#[derive(RetryableError)]
enum ShopError {
    #[retryable(after = 30)]
    Late,
}

fn main() {}
