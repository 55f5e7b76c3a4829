use mqguard::RetryableError;

#[derive(RetryableError)]
enum E1 {
    Late,
    #[fatal]
    Wrong,
    Lost(u32),
    Gone { since: u64 },
}

#[derive(RetryableError)]
struct E2;

#[derive(RetryableError)]
struct E3(String);

fn main() {
    retry::<E1>();
    retry::<E2>();
    retry::<E3>();
}

fn retry<E: RetryableError>() {}
