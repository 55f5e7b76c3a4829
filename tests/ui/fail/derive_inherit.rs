use mqguard::RetryableError;

struct NotClassified;

#[derive(RetryableError)]
enum E1 {
    #[retryable(inherit)]
    None,
    #[retryable(inherit)]
    Two(std::io::Error, u32),
    #[retryable(inherit = sorce)]
    Named { source: std::io::Error, code: u32 },
    #[retryable(inherit = "source")]
    Quoted { source: std::io::Error, code: u32 },
    #[retryable(inherit(source))]
    Listed { source: std::io::Error, code: u32 },
}

#[derive(RetryableError)]
enum E2 {
    #[retryable(inherit)]
    Inner(NotClassified),
}

#[derive(RetryableError)]
#[retryable(inherit)]
struct E3 {
    inner: NotClassified,
}

#[derive(RetryableError)]
struct E4 {
    #[retryable]
    inner: std::io::Error,
}

fn main() {
    retry::<NotClassified>();
    retry::<E1>();
    retry::<E2>();
    retry::<E3>();
    retry::<E4>();
}

fn retry<E: RetryableError>() {}
