use mqguard::RetryableError;

#[derive(RetryableError)]
union E1 {
    a: u8,
    b: i8,
}

fn main() {
    retry::<E1>();
}

fn retry<E: RetryableError>() {}
