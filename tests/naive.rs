//! The algorithms that everybody writes first, and mqguard's, in the same accidents: the table in `docs/idempotency.md`.
#![cfg(feature = "testing")]
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "naive/accidents.rs"]
mod accidents;
#[path = "naive/stores.rs"]
mod stores;

use accidents::{ACCIDENTS, Accident, Outcome};
use mqguard::MemoryStore;
use stores::{FirstCome, LookedUp, Unowned};

/// A line of the table: what each algorithm makes of an accident.
async fn line(accident: &Accident) -> String {
    let outcomes = [
        accident.with(FirstCome::new).await,
        accident.with(FirstCome::forgiving).await,
        accident.with(LookedUp::default).await,
        accident.with(Unowned::default).await,
        accident.with(MemoryStore::new).await,
    ];
    let [.., ours] = &outcomes;
    assert_eq!(*ours, accident.best, "{}", accident.what);
    format!("| {} | {} |", accident.what, outcomes.map(Outcome::shown).join(" | "))
}

#[tokio::test(start_paused = true)]
async fn the_table_in_the_documentation_is_what_happens() {
    let mut lines = vec!["| accident | A | B | C | D | mqguard |".to_owned(), "|---|---|---|---|---|---|".to_owned()];
    for accident in &ACCIDENTS {
        lines.push(line(accident).await);
    }
    let table = lines.join("\n");
    let page = include_str!("../docs/idempotency.md");
    assert!(page.contains(&table), "the table in docs/idempotency.md is to be:\n\n{table}\n");
}
