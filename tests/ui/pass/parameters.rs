#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unused_async, clippy::duration_suboptimal_units)]

use super::shop;

use mqguard::{Attempt, Context, Effects, Extract, Failure, Headers, Raw, State, consumer};
use shop::{Db, Order, OrderError, register};

#[derive(Clone)]
struct Tenant(String);

impl Extract for Tenant {
    async fn extract(cx: &Context) -> Result<Self, Failure> {
        Ok(Self(cx.origin().queue.to_owned()))
    }
}

#[consumer(queue = "q")]
async fn everything(
    order: Order,
    db: State<Db>,
    cx: Context,
    headers: Headers,
    attempt: Attempt,
    effects: Effects,
    tenant: Tenant,
) -> Result<(), OrderError> {
    let _ = (order, db, cx, headers, attempt, effects, tenant.0);
    Ok(())
}

#[consumer(queue = "q")]
async fn destructured(Order { order_id, customer, .. }: Order, State(db): State<Db>, Tenant(tenant): Tenant) {
    let _ = (order_id, customer, db, tenant);
}

#[consumer(queue = "q")]
async fn mutable(mut order: Order, _: State<Db>, mut attempt: Attempt) {
    order.order_id += 1;
    attempt.retries += 1;
    let _ = (order.order_id, attempt.retries);
}

#[consumer(queue = "q")]
async fn undecoded(Raw(body): Raw) {
    let _ = body;
}

#[consumer(queue = "q")]
async fn collected((order, name): (Order, String), _more: State<Vec<(u8, [u16; 2])>>) {
    let _ = (order, name);
}

#[consumer(queue = "q")]
async fn with_attributes(#[allow(unused_variables)] order: Order) {}

pub(crate) fn main() {
    register::<everything>();
    register::<destructured>();
    register::<mutable>();
    register::<undecoded>();
    register::<collected>();
    register::<with_attributes>();
}
