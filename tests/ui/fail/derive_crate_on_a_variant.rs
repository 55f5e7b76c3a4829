use mqguard::RetryableError;

#[derive(RetryableError)]
enum ShopError {
    #[retryable(crate = mqguard)]
    Lost,
}

fn main() {}
