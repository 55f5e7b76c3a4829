use mqguard::RetryableError;

#[derive(RetryableError)]
enum Wrapped<E> {
    #[retryable(inherit)]
    Inner(E),
    #[fatal]
    Other,
}

struct NotClassified;

fn retry<E: RetryableError>() {}

fn main() {
    retry::<Wrapped<std::io::Error>>();
    retry::<Wrapped<NotClassified>>();
}
