#![deny(warnings)]

use super::shop;

use mqguard::{Attempt, Context, Precheck, State, consumer};
use shop::{Order, OrderError, register};

mod checks {
    use super::{Attempt, Context, Order, OrderError, Precheck, State};

    pub async fn plain(_order: &Order) -> Precheck {
        Precheck::Proceed
    }

    pub async fn fallible(_order: &Order) -> Result<Precheck, OrderError> {
        Ok(Precheck::Skip)
    }

    pub async fn generic<T: Sync>(_order: &T) -> Precheck {
        Precheck::Proceed
    }

    pub async fn with_more(_order: &Order, _cx: Context, State(_limit): State<u64>, _attempt: Attempt) -> Precheck {
        Precheck::Proceed
    }

    pub struct Checks;

    impl Checks {
        pub async fn method(_order: &Order) -> Precheck {
            Precheck::Proceed
        }
    }
}

#[consumer(queue = "q", precheck = checks::plain)]
async fn one(_order: Order) {}

#[consumer(queue = "q", precheck = self::checks::fallible)]
async fn two(_order: Order) {}

#[consumer(queue = "q", precheck = checks::generic::<Order>)]
async fn three(_order: Order) {}

#[consumer(queue = "q", precheck = checks::Checks::method)]
async fn four(_order: Order) {}

#[consumer(queue = "q", precheck = checks::with_more)]
async fn five(_order: Order, _limit: State<u64>) {}

pub(crate) fn main() {
    register::<one>();
    register::<two>();
    register::<three>();
    register::<four>();
    register::<five>();
}
