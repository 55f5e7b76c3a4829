#![deny(warnings)]

use super::shop;

use mqguard::consumer;
use shop::{Customer, Order, OrderError, register};

#[consumer(queue = "a")]
async fn first(order: Order) -> Result<(), OrderError> {
    second(order).await
}

#[consumer(queue = "b")]
async fn second(order: Order) -> Result<(), OrderError> {
    if order.order_id > 0 {
        // The function and the type have one name, and neither is in the other's way.
        Box::pin(first(Order { order_id: order.order_id - 1, ..order })).await?;
    }
    Ok(())
}

fn pointers() -> Vec<&'static str> {
    let _: fn(Order) -> _ = first;
    let _ = size_of::<second>();
    [std::any::type_name::<first>(), std::any::type_name::<second>()].into()
}

pub(crate) fn main() {
    register::<first>();
    register::<second>();
    assert_eq!(pointers().len(), 2);
    drop(second(Order { order_id: 1, price: 1.0, customer: Customer { id: String::new() } }));
}
