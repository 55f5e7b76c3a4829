use std::time::Duration;

use mqguard::RetryableError;

#[derive(RetryableError)]
enum E1 {
    #[fatal]
    Late(#[retryable] std::io::Error),
    Wrong(#[retryable(inherit)] std::io::Error),
}

#[derive(RetryableError)]
#[retryable(inherit)]
enum E2 {
    Late(std::io::Error),
}

#[derive(RetryableError)]
#[retryable(after = wait)]
enum E3 {
    Late { wait: Duration },
}

fn main() {
    retry::<E1>();
    retry::<E2>();
    retry::<E3>();
}

fn retry<E: RetryableError>() {}
