#![deny(warnings)]

use super::shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

macro_rules! handlers {
    ($(
        $(#[$meta:meta])*
        $vis:vis $name:ident($pattern:pat_param = $ty:ty) -> $out:ty = $queue:expr, $delay:literal, $body:block
    )+) => {$(
        $(#[$meta])*
        #[consumer(queue = $queue, dlq = "dead", retry(max = 3, delay = $delay))]
        $vis async fn $name($pattern: $ty) -> $out $body
    )+};
}

handlers! {
    /// Documented.
    #[allow(clippy::unused_async)]
    pub created(_ = Order) -> Result<(), OrderError> = "created", "5s", { Ok(()) }
    pub(crate) deleted(Order { order_id, .. } = Order) -> Result<(), OrderError> = "deleted", "1m", {
        if order_id == 0 { Err(OrderError) } else { Ok(()) }
    }
    private(_order = Vec<Order>) -> () = "private", "1h", {}
}

macro_rules! errors {
    ($name:ident { $($variant:ident: $class:meta),+ $(,)? }) => {
        #[derive(Debug, mqguard::RetryableError)]
        #[allow(dead_code)]
        enum $name { $(#[$class] $variant),+ }
    };
}

errors!(Failure { Late: retryable(after = "5s"), Later: retryable, Wrong: fatal });

pub(crate) fn main() {
    register::<created>();
    register::<deleted>();
    register::<private>();
    let _ = Failure::Late;
}
