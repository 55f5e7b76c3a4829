#[path = "../shop.rs"]
mod shop;

use mqguard::sqlx::{MySql, Postgres, Sqlite};
use mqguard::{Tx, consumer};
use shop::{Order, OrderError, register};

#[consumer(queue = "q", idempotent(store = "postgres", transactional))]
async fn without_tx(_order: Order) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent = "mysql")]
async fn not_transactional(_order: Order, _tx: Tx<'_, MySql>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q")]
async fn not_idempotent(_order: Order, _tx: Tx<'_, Sqlite>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "redis", transactional))]
async fn on_redis(_order: Order, _tx: Tx<'_, Postgres>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "mysql", transactional))]
async fn another_database(_order: Order, _tx: Tx<'_, Postgres>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "sqlite", transactional))]
async fn two(_order: Order, _tx: Tx<'_, Sqlite>, _other: Tx<'_, Sqlite>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "sqlite", transactional, on_store_down = "run"))]
async fn without_store(_order: Order, _tx: Tx<'_, Sqlite>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "sqlite", transactional = true))]
async fn with_a_value(_order: Order, _tx: Tx<'_, Sqlite>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "sqlite", transactional))]
async fn by_reference(_order: Order, _tx: &mut Tx<'_, Sqlite>) -> Result<(), OrderError> {
    Ok(())
}

#[consumer(queue = "q", idempotent(store = "sqlite", transaction))]
async fn misspelt(_order: Order, _tx: Tx<'_, Sqlite>) -> Result<(), OrderError> {
    Ok(())
}

fn main() {
    register::<without_tx>();
    register::<not_transactional>();
    register::<not_idempotent>();
    register::<on_redis>();
    register::<another_database>();
    register::<two>();
    register::<without_store>();
    register::<with_a_value>();
    register::<by_reference>();
    register::<misspelt>();
}
