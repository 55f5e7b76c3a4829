#![deny(warnings)]
#![allow(non_upper_case_globals)]

use super::shop;

use mqguard::{Context, Precheck, State, consumer};
use shop::{Db, Order, register};

// Names that the expansion uses for itself.
#[consumer(queue = "q", idempotent(store = "memory", key = "order_id"), precheck = wanted)]
async fn run(__message: Order, __cx: State<Db>, __states: Context) {
    let _ = (__message, __cx, __states);
}

#[consumer(queue = "q")]
async fn check(__outcome: Order) {
    let _ = __outcome;
}

#[consumer(queue = "q")]
async fn business_key(__error: Order) {
    let _ = __error;
}

async fn wanted(message: &Order) -> Precheck {
    let _ = message;
    Precheck::Proceed
}

mod with_constants {
    use super::{Context, Order, Precheck, consumer};

    #[allow(dead_code)]
    const message: u8 = 0;
    #[allow(dead_code)]
    static cx: u8 = 0;
    #[allow(dead_code)]
    const states: u8 = 0;

    #[consumer(queue = "q", idempotent(store = "memory", key = "order_id"), precheck = wanted)]
    pub async fn f(_order: Order, _context: Context) {}

    async fn wanted(_order: &Order) -> Precheck {
        Precheck::Proceed
    }
}

pub(crate) fn main() {
    register::<run>();
    register::<check>();
    register::<business_key>();
    register::<with_constants::f>();
}
