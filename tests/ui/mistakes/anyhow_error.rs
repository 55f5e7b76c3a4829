#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, register};

/// Like the error types that stand for any other: it converts from errors and is none itself.
mod anyhow {
    #[derive(Debug)]
    pub struct Error(#[allow(dead_code)] Box<dyn std::error::Error + Send + Sync>);

    impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
        fn from(error: E) -> Self {
            Self(Box::new(error))
        }
    }

    impl From<Error> for Box<dyn std::error::Error + Send + Sync> {
        fn from(error: Error) -> Self {
            error.0
        }
    }
}

#[consumer(queue = "order.process")]
async fn process_order(_order: Order) -> Result<(), anyhow::Error> {
    Ok(())
}

fn main() {
    register::<process_order>();
}
