use mqguard::RetryableError;

#[derive(RetryableError)]
enum E1 {
    #[retryable(afer = "30s")]
    A,
    #[retryable(delay = "30s")]
    B,
    #[retryable(uncounted)]
    C,
    #[retryable(after = "30s", uncounted = true)]
    D,
    #[retryable(after = "30s", after = "40s")]
    E,
    #[retryable("30s")]
    F,
    #[retryable = "30s"]
    G,
    #[retryable(max = 3)]
    H,
    #[fatal(after = "30s")]
    I,
    #[retryable(inherit, after = "1s")]
    J(std::io::Error),
    #[retryable(color = 1)]
    K,
}

fn main() {
    retry::<E1>();
}

fn retry<E: RetryableError>() {}
