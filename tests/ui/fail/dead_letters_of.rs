#[path = "../shop.rs"]
mod shop;

use mqguard::{Raw, consumer, dead_letter_consumer};
use shop::{Order, register};

async fn not_a_consumer(_order: Order) {}

#[consumer(queue = "q")]
async fn process_order(_order: Order) {}

#[dead_letter_consumer(queue = "d", of = not_a_consumer)]
async fn f1(_letter: Raw) {}

#[dead_letter_consumer(queue = "d", of = process_ordr)]
async fn f2(_letter: Raw) {}

#[dead_letter_consumer(queue = "d", of = Order)]
async fn f3(_letter: Raw) {}

fn main() {
    register::<process_order>();
    register::<f1>();
    register::<f2>();
    register::<f3>();
}
