#[path = "../shop.rs"]
mod shop;

use mqguard::{DeadLetter, dead_letter_consumer};
use shop::register;

struct Parcel;

#[dead_letter_consumer(queue = "dead")]
async fn record(_letter: DeadLetter<Parcel>) {}

fn main() {
    register::<record>();
}
