#![deny(warnings)]

use super::shop;

use mqguard::consumer;
use shop::{Order, OrderError, register};

macro_rules! same {
    ($($item:item)+) => {$($item)+};
}

same! {
    /// Docs above.
    #[allow(clippy::unused_async)]
    #[consumer(queue = "q",)]
    /// Docs below.
    #[inline(never)]
    async fn f(
        /* a comment */ _order: Order, // and another
    ) -> Result<(), OrderError,> {
        Ok(())
    }
}

#[rustfmt::skip]
#[consumer(queue="q",dlq="d",retry(max=3,delay="1s",factor=2,),idempotent(store="memory",),bind(exchange="x",routing_key="#",),)]
async fn dense(_order:Order)->Result<(),OrderError>{Ok(())}

pub(crate) fn main() {
    register::<f>();
    register::<dense>();
}
