#![deny(warnings)]
#![allow(clippy::unused_unit)]

use super::shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

mod app {
    pub type Result<T, E = super::OrderError> = std::result::Result<T, E>;
    pub type Done = Result<()>;
}

#[consumer(queue = "q")]
async fn one(_order: Order) -> app::Result<()> {
    Ok(())
}

#[consumer(queue = "q")]
async fn two(_order: Order) -> app::Done {
    Ok(())
}

#[consumer(queue = "q")]
async fn three(_order: Order) -> std::io::Result<()> {
    Ok(())
}

#[consumer(queue = "q")]
async fn four(_order: Order) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Ok(())
}

#[consumer(queue = "q")]
async fn five(_order: Order) -> Result<(), std::convert::Infallible> {
    Ok(())
}

#[consumer(queue = "q")]
async fn six(_order: Order) -> () {}

pub(crate) fn main() {
    register::<one>();
    register::<two>();
    register::<three>();
    register::<four>();
    register::<five>();
    register::<six>();
}
