//! A bank: one account, and payments to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mqguard::{Attempt, Event, EventKind, Guard, RetryableError, Running, sqlx};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use crate::database::{Kind, Lab};
use crate::session::Session;

/// An amount for an account, and what goes wrong on the way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Payment {
    pub(crate) account: String,
    pub(crate) cents: i64,
    /// In so many runs, from the first on.
    pub(crate) failures: u32,
    pub(crate) how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum How {
    Transient,
    Fatal,
    Panic,
    /// It does not end.
    Hang,
    /// It ends the transaction, which is not its to end.
    Commit,
    Rollback,
    /// The first run waits for the test, between its statements.
    WaitInTheMiddle,
    /// The first run waits for the test, after its statements.
    WaitAtTheEnd,
}

impl How {
    pub(crate) fn ends(self) -> Option<&'static str> {
        match self {
            Self::Commit => Some("COMMIT"),
            Self::Rollback => Some("ROLLBACK"),
            _ => None,
        }
    }
}

#[derive(Debug, thiserror::Error, RetryableError)]
pub(crate) enum PaymentError {
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

/// Where the handler meets the test.
pub(crate) struct Desk {
    runs: UnboundedSender<Attempt>,
    has_waited: AtomicBool,
    go: Arc<Semaphore>,
}

impl Desk {
    async fn wait(&self) {
        if !self.has_waited.swap(true, Ordering::SeqCst) {
            self.runs.send(Attempt::default()).expect("the test listens");
            self.go.acquire().await.expect("it is open").forget();
        }
    }

    pub(crate) async fn in_the_middle(&self, payment: &Payment) {
        if payment.how == How::WaitInTheMiddle {
            self.wait().await;
        }
    }

    pub(crate) async fn at_the_end(&self, payment: &Payment, attempt: Attempt) -> Result<(), PaymentError> {
        match payment.how {
            How::WaitAtTheEnd => self.wait().await,
            _ if attempt.retries >= payment.failures => {}
            How::Transient => return Err(PaymentError::Closed),
            How::Fatal => return Err(PaymentError::Blocked),
            How::Panic => panic!("in the middle"),
            How::Hang => std::future::pending().await,
            How::Commit | How::Rollback | How::WaitInTheMiddle => {}
        }
        Ok(())
    }
}

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    /// After so many retries.
    Processed(u32),
    Duplicate,
    Retried(String),
    Dead(String),
    Busy,
    Returned,
    Other(String),
}

impl Told {
    fn of(event: &Event<'_>) -> Self {
        match &event.kind {
            EventKind::Processed { .. } => Self::Processed(event.attempt.retries),
            EventKind::Duplicate => Self::Duplicate,
            EventKind::Retried { error, .. } => Self::Retried(error.to_string()),
            EventKind::DeadLettered { error, .. } => Self::Dead(error.to_string()),
            EventKind::Busy { .. } => Self::Busy,
            EventKind::Returned => Self::Returned,
            other => Self::Other(format!("{other:?}")),
        }
    }
}

pub(crate) struct Bank {
    running: Option<Running>,
    told: UnboundedReceiver<Told>,
    runs: UnboundedReceiver<Attempt>,
    go: Arc<Semaphore>,
    pub(crate) session: Session,
    pub(crate) lab: Lab,
}

pub(crate) const BEFORE: i64 = 1_000;

impl Bank {
    pub(crate) async fn open(kind: Kind, consumer: impl FnOnce(Guard) -> Guard) -> Self {
        let lab = Lab::new(kind).await;
        let mut session = lab.session().await;
        session
            .must(&format!(
                "CREATE TABLE account (name VARCHAR(20) PRIMARY KEY, cents BIGINT NOT NULL CHECK (cents >= 0), payments BIGINT NOT NULL);
                 INSERT INTO account VALUES ('a', {BEFORE}, 0)"
            ))
            .await;
        let (sender, told) = mpsc::unbounded_channel();
        let (run, runs) = mpsc::unbounded_channel();
        let go = Arc::new(Semaphore::new(0));
        let desk = Desk { runs: run, has_waited: AtomicBool::new(false), go: Arc::clone(&go) };
        let guard = consumer(Guard::embedded().state(desk)).store_url(&lab.url()).grace(Duration::from_millis(100));
        let guard = guard.observe(move |event: &Event<'_>| drop(sender.send(Told::of(event))));
        Self { running: Some(guard.start().await.expect("it starts")), told, runs, go, session, lab }
    }

    pub(crate) async fn publish(&self, id: &str, payment: &Payment) {
        let running = self.running.as_ref().expect("it runs");
        let draft = running.publisher().json(payment).expect("plain data").message_id(id);
        draft.to_queue("payments").await.expect("it is published");
    }

    /// The next event but that a message was busy.
    pub(crate) async fn told(&mut self) -> Told {
        let told = async {
            loop {
                match self.told.recv().await.expect("it runs") {
                    Told::Busy => {}
                    told => return told,
                }
            }
        };
        timeout(Duration::from_secs(30), told).await.expect("something happens")
    }

    pub(crate) async fn shut_down(&mut self) {
        self.running.take().expect("it runs").shutdown().await.expect("it ends");
    }

    /// Waits until the first run waits.
    pub(crate) async fn waits(&mut self) {
        timeout(Duration::from_secs(30), self.runs.recv()).await.expect("it runs").expect("it runs");
    }

    pub(crate) fn go(&self) {
        self.go.add_permits(1);
    }

    /// The cents in the account, and how many payments it says made them.
    pub(crate) async fn account(&mut self) -> (i64, i64) {
        (self.session.number("SELECT cents FROM account").await, self.session.number("SELECT payments FROM account").await)
    }

    /// Ends the session in whose transaction a handler waits.
    pub(crate) async fn end_session_of_handler(&mut self) {
        let name = &self.lab.name;
        let ended = match self.lab.kind {
            Kind::Postgres => {
                let idle = format!("FROM pg_stat_activity WHERE datname = '{name}' AND state = 'idle in transaction'");
                self.session.numbers(&format!("SELECT CAST(pg_terminate_backend(pid) AS int)::bigint {idle}")).await.len()
            }
            Kind::MariaDb => {
                let open = "SELECT CAST(trx_mysql_thread_id AS SIGNED) FROM information_schema.innodb_trx t";
                let here = format!("JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE p.db = '{name}'");
                let ids = self.session.numbers(&format!("{open} {here}")).await;
                for id in &ids {
                    self.session.must(&format!("KILL {id}")).await;
                }
                ids.len()
            }
            Kind::Sqlite => panic!("it has no server"),
        };
        assert_eq!(ended, 1, "sessions that were ended");
    }
}

pub(crate) fn payment(failures: u32, how: How) -> Payment {
    Payment { account: "a".into(), cents: 7, failures, how }
}
