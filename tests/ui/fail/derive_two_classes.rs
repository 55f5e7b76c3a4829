use mqguard::RetryableError;

#[derive(RetryableError)]
enum E1 {
    #[retryable]
    #[fatal]
    Late,
    #[fatal]
    #[fatal]
    Wrong,
    #[retryable(after = "1s")]
    #[retryable]
    Lost,
}

#[derive(RetryableError)]
#[fatal]
#[retryable]
enum E2 {
    Late,
}

#[derive(RetryableError)]
#[fatal]
#[retryable]
struct E3;

fn main() {
    retry::<E1>();
    retry::<E2>();
    retry::<E3>();
}

fn retry<E: RetryableError>() {}
