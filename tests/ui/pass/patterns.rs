#![deny(warnings)]

use super::shop;

use mqguard::{State, consumer};
use shop::{Customer, Order, register};

#[consumer(queue = "q")]
async fn nested(Order { order_id: id, customer: Customer { id: customer }, .. }: Order) {
    let _ = (id, customer);
}

#[consumer(queue = "q")]
async fn bound(mut order @ Order { .. }: Order, State(ref db): State<String>) {
    order.order_id += db.len() as u64;
    drop(order);
}

#[consumer(queue = "q")]
async fn tuple((left, right): (u8, u8), _: State<u8>) {
    let _ = left + right;
}

#[consumer(queue = "q")]
async fn array([first, .., last]: [u8; 4]) {
    let _ = first + last;
}

#[consumer(queue = "q")]
async fn ignored(_: Order) {}

pub(crate) fn main() {
    register::<nested>();
    register::<bound>();
    register::<tuple>();
    register::<array>();
    register::<ignored>();
}
