#[path = "../shop.rs"]
mod shop;

use mqguard::{DeadLetter, dead_letter_consumer};
use shop::register;

#[dead_letter_consumer(queue = "dead")]
async fn record(_letter: DeadLetter) {}

fn main() {
    register::<record>();
}
