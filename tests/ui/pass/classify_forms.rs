#![deny(warnings)]

use super::shop;

use mqguard::{Retry, consumer};
use shop::{Order, register};

#[derive(Debug, thiserror::Error)]
#[error("foreign")]
struct Foreign;

mod rules {
    use super::{Foreign, Retry};

    pub fn of_foreign(_error: &Foreign) -> Retry {
        Retry::Retryable
    }

    pub fn of_any<E: std::fmt::Debug>(_error: &E) -> Retry {
        Retry::After(std::time::Duration::from_secs(1))
    }
}

#[consumer(queue = "q", dlq = "d", retry(max = 3), classify = rules::of_foreign)]
async fn one(_order: Order) -> Result<(), Foreign> {
    Err(Foreign)
}

#[consumer(queue = "q", classify = rules::of_any)]
async fn two(_order: Order) -> Result<(), String> {
    Ok(())
}

#[consumer(queue = "q", classify = rules::of_any::<Box<dyn std::error::Error + Send + Sync>>)]
async fn three(_order: Order) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Ok(())
}

pub(crate) fn main() {
    register::<one>();
    register::<two>();
    register::<three>();
}
