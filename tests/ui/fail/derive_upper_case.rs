use mqguard::RetryableError;

#[derive(RetryableError)]
enum ShopError {
    #[Fatal]
    Lost,
}

fn main() {}
