use mqguard::RetryableError;

#[derive(RetryableError)]
enum E1 {
    #[retriable]
    Late,
    #[fatl]
    Wrong,
}

fn main() {
    retry::<E1>();
}

fn retry<E: RetryableError>() {}
