#![deny(warnings)]

use super::shop;

use std::error::Error;
use std::sync::Arc;

use mqguard::{Failure, Retry, RetryableError, consumer};
use shop::{Order, OrderError, register};

#[derive(Debug, thiserror::Error, RetryableError)]
#[error("{0}")]
#[retryable(inherit)]
struct Wrapped<E: Error + 'static>(#[source] E);

macro_rules! consumers {
    ($($name:ident: $ty:ty),+ $(,)?) => {
        $(
            #[consumer(queue = "q")]
            async fn $name(_order: Order) -> Result<(), $ty> {
                Ok(())
            }
        )+

        pub(crate) fn main() {
            $(register::<$name>();)+
            assert_eq!(Wrapped(OrderError).retry(), Retry::Retryable);
        }
    };
}

consumers! {
    own: OrderError,
    boxed: Box<OrderError>,
    shared: Arc<OrderError>,
    generic: Wrapped<std::io::Error>,
    nested: Wrapped<Wrapped<OrderError>>,
    of_std: std::io::Error,
    any: Box<dyn Error + Send + Sync>,
    in_another_order: Box<dyn Error + Sync + Send + 'static>,
    by_hand: Failure,
    never: std::convert::Infallible,
}
