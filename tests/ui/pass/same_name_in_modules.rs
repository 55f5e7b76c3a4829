#![deny(warnings)]

use super::shop;

use mqguard::Consumer;
use shop::register;

mod orders {
    #[mqguard::consumer(queue = "orders")]
    pub async fn process(_order: super::shop::Order) {}
}

mod refunds {
    #[mqguard::consumer(queue = "refunds")]
    pub async fn process(_order: super::shop::Order) {}

    pub mod letters {
        #[mqguard::dead_letter_consumer(queue = "dead", of = super::process)]
        pub async fn process(_letter: mqguard::Raw) {}
    }
}

pub(crate) fn main() {
    register::<orders::process>();
    register::<refunds::process>();
    register::<refunds::letters::process>();
    assert_ne!(<orders::process as Consumer>::SPEC, <refunds::process as Consumer>::SPEC);
}
