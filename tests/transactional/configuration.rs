//! What is wrong with a transactional consumer is told at start.

use mqguard::sqlx::{Postgres, Sqlite};
use mqguard::{Guard, Tx, consumer};

#[consumer(queue = "q", idempotent(store = "sqlite", transactional))]
async fn pay(_body: String, _tx: Tx<'_, Sqlite>) {}

/// The attribute cannot see what it is.
type Hidden<'a> = Tx<'a, Postgres>;

#[consumer(queue = "q", idempotent = "sqlite")]
async fn not_transactional(_body: String, _tx: Hidden<'_>) {}

#[consumer(queue = "q", idempotent(store = "sqlite", transactional))]
async fn of_another(_body: String, _first: Tx<'_, Sqlite>, _hidden: Hidden<'_>) {}

async fn refused(guard: Guard) -> String {
    guard.start().await.expect_err("it does not start").to_string()
}

#[tokio::test]
async fn a_store_without_transactions_is_told() {
    let why = refused(Guard::embedded().consumer::<pay>()).await;
    assert!(why.contains("consumer `pay` (queue `q`)"), "{why}");
    assert!(why.contains("it is `transactional`, but the store `sqlite` has no transactions"), "{why}");
    assert_eq!(why.lines().count(), 1, "{why}");
    assert!(why.contains("call `.store_url"), "{why}");
}

#[tokio::test]
async fn a_tx_without_transactional_is_told() {
    let why = refused(Guard::embedded().consumer::<not_transactional>()).await;
    assert!(why.contains("it takes a `Tx`, but is not `transactional`"), "{why}");
}

#[tokio::test]
async fn a_tx_of_another_database_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite:{}", directory.path().join("records.db").display());
    let why = refused(Guard::embedded().consumer::<of_another>().store_url(&url)).await;
    assert!(why.contains("Postgres`, but its store is a `"), "{why}");
}
