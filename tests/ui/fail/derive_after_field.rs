use std::time::Duration;

use mqguard::RetryableError;

#[derive(RetryableError)]
enum E1 {
    #[retryable(after = retry_aftr)]
    Late { retry_after: Duration },
    #[retryable(after = 1)]
    Busy(Duration),
    #[retryable(after = retry_after)]
    Gone,
    #[retryable(after = "retry_after")]
    Text { retry_after: Duration },
}

#[derive(RetryableError)]
enum E2 {
    #[retryable(after = seconds)]
    Late { seconds: u64 },
    #[retryable(after = 0, uncounted)]
    Busy(String),
}

fn main() {
    retry::<E1>();
    retry::<E2>();
}

fn retry<E: RetryableError>() {}
