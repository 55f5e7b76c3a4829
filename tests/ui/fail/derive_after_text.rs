use mqguard::RetryableError;

#[derive(RetryableError)]
enum E1 {
    #[retryable(after = "30")]
    A,
    #[retryable(after = "30 sec")]
    B,
    #[retryable(after = "31d")]
    C,
    #[retryable(after = 30s)]
    D,
    #[retryable(after)]
    E,
    #[retryable(after = Duration::from_secs(5))]
    F,
    #[retryable(after = "")]
    G,
    #[retryable(after = -5)]
    H,
}

fn main() {
    retry::<E1>();
}

fn retry<E: RetryableError>() {}
