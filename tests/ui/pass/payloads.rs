#![deny(warnings, clippy::pedantic)]
#![allow(clippy::unused_async, dead_code)]

use super::shop;

use std::collections::{BTreeMap, HashMap};

use mqguard::consumer;
use shop::{Order, register};

#[derive(serde::Deserialize)]
struct Envelope<T> {
    body: T,
}

#[derive(serde::Deserialize)]
#[serde(tag = "kind")]
enum Event {
    Created { order_id: u64 },
    Deleted,
}

type Orders = Vec<Order>;

macro_rules! consumers {
    ($($name:ident: $ty:ty),+ $(,)?) => {
        $(#[consumer(queue = "q")] async fn $name(_message: $ty) {})+

        pub(crate) fn main() {
            $(register::<$name>();)+
        }
    };
}

consumers! {
    list: Vec<Order>,
    alias: Orders,
    map: HashMap<String, Order>,
    sorted: BTreeMap<String, Option<Order>>,
    pair: (u64, Order),
    array: [u8; 4],
    nothing: (),
    optional: Option<Order>,
    text: String,
    number: u64,
    boxed: Box<Order>,
    any: serde_json::Value,
    generic: Envelope<Order>,
    nested: Envelope<Vec<(String, Order)>>,
    event: Event,
    whole_path: ::std::string::String,
    text_that_may_be_owned: std::borrow::Cow<'static, str>,
}
