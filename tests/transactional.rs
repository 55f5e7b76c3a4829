//! Handlers that write in the transaction that records their success.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use mqguard::sqlx::{self, Connection as _, Sqlite, SqliteConnection};
use mqguard::{Attempt, Event, EventKind, Guard, RetryableError, Running, Tx, consumer};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::timeout;

/// An amount to add to an account, and what goes wrong on the way.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Payment {
    account: String,
    cents: i64,
    /// How often it fails after it has written.
    failures: u32,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum How {
    Transient,
    Fatal,
    Panic,
}

#[derive(Debug, thiserror::Error, RetryableError)]
enum PaymentError {
    #[error("the bank is closed")]
    #[retryable]
    Closed,
    #[error("the account is blocked")]
    #[fatal]
    Blocked,
    #[error("the database")]
    #[retryable(inherit)]
    Database(#[from] sqlx::Error),
}

#[consumer(queue = "payments", retry(max = 3, delay = "10ms"), dlq = "dlq.payments", idempotent(store = "sqlite", transactional))]
async fn pay(payment: Payment, mut tx: Tx<'_, Sqlite>, attempt: Attempt) -> Result<(), PaymentError> {
    sqlx::query("UPDATE account SET cents = cents + ? WHERE name = ?")
        .bind(payment.cents)
        .bind(&payment.account)
        .execute(&mut *tx)
        .await?;
    if attempt.retries < payment.failures {
        match payment.how {
            How::Transient => return Err(PaymentError::Closed),
            How::Fatal => return Err(PaymentError::Blocked),
            How::Panic => panic!("in the middle"),
        }
    }
    Ok(())
}

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq)]
enum Told {
    Processed,
    Duplicate,
    Retried,
    Dead,
    Other,
}

struct Bank {
    running: Running,
    events: UnboundedReceiver<Told>,
    url: String,
    _directory: TempDir,
}

impl Bank {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("bank.db").display());
        let mut client = SqliteConnection::connect(&format!("{url}?mode=rwc")).await.unwrap();
        sqlx::raw_sql("CREATE TABLE account (name TEXT PRIMARY KEY, cents INTEGER NOT NULL CHECK (cents >= 0)); INSERT INTO account VALUES ('a', 1000)")
            .execute(&mut client)
            .await
            .unwrap();
        let (sender, events) = mpsc::unbounded_channel();
        let guard = Guard::embedded().consumer::<pay>().store_url(&url).observe(move |event: &Event<'_>| {
            let told = match event.kind {
                EventKind::Processed { .. } => Told::Processed,
                EventKind::Duplicate => Told::Duplicate,
                EventKind::Retried { .. } => Told::Retried,
                EventKind::DeadLettered { .. } => Told::Dead,
                _ => Told::Other,
            };
            let _ = sender.send(told);
        });
        Self { running: guard.start().await.unwrap(), events, url, _directory: directory }
    }

    async fn publish(&self, id: &str, payment: &Payment) {
        self.running.publisher().json(payment).unwrap().message_id(id).to_queue("payments").await.unwrap();
    }

    async fn told(&mut self) -> Told {
        timeout(Duration::from_secs(20), self.events.recv()).await.expect("something happens").unwrap()
    }

    async fn cents(&self) -> i64 {
        let mut client = SqliteConnection::connect(&self.url).await.unwrap();
        sqlx::query_scalar("SELECT cents FROM account").fetch_one(&mut client).await.unwrap()
    }
}

fn payment(failures: u32, how: How) -> Payment {
    Payment { account: "a".into(), cents: 7, failures, how }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_is_there_once_the_message_is_processed() {
    let mut bank = Bank::open().await;
    bank.publish("1", &payment(0, How::Transient)).await;
    assert_eq!(bank.told().await, Told::Processed);
    assert_eq!(bank.cents().await, 1_007);
    bank.publish("1", &payment(0, How::Transient)).await;
    assert_eq!(bank.told().await, Told::Duplicate);
    assert_eq!(bank.cents().await, 1_007);
    bank.running.shutdown().await.unwrap();
}
