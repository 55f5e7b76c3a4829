#[path = "../shop.rs"]
mod shop;

use mqguard::{Raw, dead_letter_consumer};
use shop::register;

#[dead_letter_consumer(queue = "d", retry(max = 3), idempotent = "redis", dlq = "dd")]
async fn f1(_letter: Raw) {}

#[dead_letter_consumer(queue = "d", on_panic = "retry", on_timeout = "fatal")]
async fn f2(_letter: Raw) {}

#[dead_letter_consumer(quue = "d", off = process_order)]
async fn f3(_letter: Raw) {}

#[dead_letter_consumer(queue = "d", of = "process_order", concurrency = 64)]
async fn f4(_letter: Raw) {}

#[dead_letter_consumer(queue = "d", bind(exchange = "x"))]
fn f5(_letter: Raw) {}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
    register::<f5>();
}
