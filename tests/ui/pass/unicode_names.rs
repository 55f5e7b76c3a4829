#![deny(warnings)]

use super::shop;

use mqguard::{Consumer, RetryableError, consumer};
use serde::Deserialize;
use shop::register;

#[derive(Debug, Deserialize)]
struct Größe {
    länge: u64,
}

#[derive(Debug, thiserror::Error, RetryableError)]
#[error("zu spät")]
enum Fehler {
    #[retryable(after = später)]
    Spät { später: std::time::Duration },
    #[fatal]
    Übel,
}

#[consumer(queue = "größe", idempotent(store = "memory", key = "länge"))]
async fn prüfe_größe(größe: Größe) -> Result<(), Fehler> {
    match größe.länge {
        0 => Err(Fehler::Übel),
        länge => Err(Fehler::Spät { später: std::time::Duration::from_secs(länge) }),
    }
}

pub(crate) fn main() {
    register::<prüfe_größe>();
    assert_eq!(<prüfe_größe as Consumer>::SPEC.name, "prüfe_größe");
    assert_eq!(prüfe_größe::business_key(&Größe { länge: 7 }).as_deref(), Some("7"));
}
