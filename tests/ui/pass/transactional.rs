#![deny(warnings)]
#![allow(unused_qualifications)]

use super::shop;

use mqguard::sqlx::{self, MySql, Postgres, Sqlite};
use mqguard::{Attempt, State, Tx, consumer};
use shop::{Order, register};

#[derive(Debug, thiserror::Error, mqguard::RetryableError)]
#[error("the database")]
#[retryable(inherit)]
struct DatabaseError(#[from] sqlx::Error);

#[consumer(queue = "sqlite", idempotent(store = "sqlite", transactional))]
async fn on_sqlite(order: Order, mut tx: Tx<'_, Sqlite>) -> Result<(), DatabaseError> {
    let id = i64::try_from(order.order_id).unwrap_or_default();
    sqlx::query("INSERT INTO orders (id) VALUES (?)").bind(id).execute(&mut *tx).await?;
    Ok(())
}

#[consumer(queue = "postgres", idempotent(transactional, store = "postgres", mode = "state_machine", lease = "2s"))]
async fn on_postgres(_order: Order, attempt: Attempt, mut tx: Tx<'_, Postgres>, _db: State<String>) -> Result<(), DatabaseError> {
    let _ = attempt;
    write(&mut tx).await
}

/// What a handler calls takes the connection.
async fn write(connection: &mut sqlx::PgConnection) -> Result<(), DatabaseError> {
    sqlx::query("UPDATE orders SET done = true").execute(connection).await?;
    Ok(())
}

type Transaction<'a> = mqguard::Tx<'a, MySql>;

#[consumer(queue = "mysql", idempotent(store = "mysql", transactional))]
async fn on_mysql(_order: Order, _tx: mqguard::Tx<'_, sqlx::MySql>) {}

pub(super) fn main() {
    register::<on_sqlite>();
    register::<on_postgres>();
    register::<on_mysql>();
    let _: Option<Transaction<'_>> = None;
}
