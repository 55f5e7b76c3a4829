use mqguard::RetryableError;

#[derive(RetryableError)]
enum ShopError {
    #[retryable(fatal)]
    Lost,
}

fn main() {}
