#![deny(warnings)]

use super::shop;

use mqguard::consumer;
use serde::Deserialize;
use shop::register;

#[derive(Deserialize)]
struct Ids {
    text: String,
    number: i64,
    maybe: Option<u32>,
    boxed: Box<str>,
    pair: (u8, Inner),
}

#[derive(Deserialize)]
struct Inner {
    id: Option<String>,
}

macro_rules! keyed {
    ($($name:ident $key:literal)+) => {$(
        #[consumer(queue = "q", idempotent(store = "memory", key = $key))]
        async fn $name(_ids: Ids) {}
    )+};
}
keyed!(one "text" two "number" three "maybe" four "boxed" five "pair.0" six "pair.1.id");

fn owned(ids: &Ids) -> String {
    format!("{}-{}", ids.text, ids.number)
}

fn borrowed(ids: &Ids) -> &str {
    &ids.text
}

fn optional(ids: &Ids) -> Option<&str> {
    ids.pair.1.id.as_deref()
}

#[consumer(queue = "q", idempotent(store = "memory", key = owned))]
async fn by_owned(_ids: Ids) {}

#[consumer(queue = "q", idempotent(store = "memory", key = self::borrowed))]
async fn by_borrowed(_ids: Ids) {}

#[consumer(queue = "q", idempotent(store = "memory", key = optional))]
async fn by_optional(_ids: Ids) {}

pub(crate) fn main() {
    register::<one>();
    register::<two>();
    register::<three>();
    register::<four>();
    register::<five>();
    register::<six>();
    register::<by_owned>();
    register::<by_borrowed>();
    register::<by_optional>();
}
