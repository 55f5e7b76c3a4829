#![deny(warnings)]

use super::shop;

use mqguard::{Context, Precheck, RetryableError, State, consumer};
use shop::{Db, Order, OrderError, register};

macro_rules! consumers {
    ($($name:ident => $queue:literal, $ty:ty, $max:literal, $check:path, $key:literal;)+) => {$(
        #[consumer(queue = $queue, dlq = "dlq", retry(max = $max, delay = "5s"), precheck = $check, idempotent(store = "memory", key = $key))]
        async fn $name(order: $ty, state: State<Db>) -> Result<(), OrderError> {
            let _ = (order, state);
            Ok(())
        }
    )+};
}

consumers! {
    created => "order.created", Order, 3, wanted, "order_id";
    deleted => "order.deleted", Order, 5, self::wanted, "customer.id";
}

macro_rules! named_inside {
    ($ty:ty) => {
        async fn inside(_order: &$ty) -> Precheck {
            Precheck::Proceed
        }

        fn order_key(order: &$ty) -> u64 {
            order.order_id
        }

        #[consumer(queue = "q", precheck = inside, idempotent(store = "memory", key = order_key))]
        async fn made_here(order: $ty, cx: Context) {
            let _ = (order, cx);
        }

        #[derive(RetryableError)]
        enum MadeHere {
            #[retryable(after = wait)]
            Late { wait: std::time::Duration },
            #[retryable(inherit)]
            Inner(std::io::Error),
        }
    };
}
named_inside!(Order);

async fn wanted(_order: &Order) -> Precheck {
    Precheck::Proceed
}

pub(crate) fn main() {
    register::<created>();
    register::<deleted>();
    register::<made_here>();
    let _ = MadeHere::Late { wait: std::time::Duration::ZERO };
    let _ = MadeHere::Inner(std::io::Error::other("x"));
}
