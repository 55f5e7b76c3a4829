use mqguard::RetryableError;

#[derive(RetryableError, RetryableError)]
#[fatal]
struct ShopError;

fn main() {}
