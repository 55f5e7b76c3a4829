//! The worker that is killed: three consumers in one process.

use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{PostgresStore, RedisStore};
use mqguard::sqlx::{self, Postgres};
use mqguard::{Attempt, Event, EventKind, Guard, RetryableError, State, Tx, consumer};

use crate::ledger::{Ledger, Watched, What};

pub(crate) const TRANSACTIONAL: &str = "chaos.transactional";
pub(crate) const REDIS: &str = "chaos.redis";
pub(crate) const UNIQUE: &str = "chaos.unique";
pub(crate) const PARTS: [&str; 3] = [TRANSACTIONAL, REDIS, UNIQUE];

/// Of each consumer.
pub(crate) const PREFETCH: usize = 20;
pub(crate) const DELAY: Duration = Duration::from_millis(200);
pub(crate) const MAX_RETRIES: u32 = 3;

/// How the handlers fare with a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fate {
    /// It succeeds after so many failures.
    After(u32),
    Fatal,
    /// It fails in every run.
    Never,
}

/// Messages beyond this one fail in every run.
pub(crate) const LAST_MIXED: u32 = 10_000;

/// Every fifth message fails once or twice, but of 50 messages one never succeeds, and one fails for good at once.
pub(crate) fn fate(message: u32) -> Fate {
    match message {
        message if message > LAST_MIXED || message % 50 == 0 => Fate::Never,
        message if message % 50 == 25 => Fate::Fatal,
        message if message % 10 == 0 => Fate::After(2),
        message if message % 5 == 0 => Fate::After(1),
        _ => Fate::After(0),
    }
}

#[derive(Debug, thiserror::Error, RetryableError)]
enum Trouble {
    #[error("not now")]
    #[retryable]
    Passing,
    #[error("not ever")]
    #[fatal]
    Final,
    #[error("the database")]
    #[retryable(inherit)]
    Database(#[from] sqlx::Error),
}

/// Takes as long as work does, and ends as the message's fate will have it.
async fn work(message: u32, attempt: Attempt) -> Result<(), Trouble> {
    tokio::time::sleep(Duration::from_millis(5)).await;
    match fate(message) {
        Fate::After(failures) if attempt.retries >= failures => Ok(()),
        Fate::After(_) | Fate::Never => Err(Trouble::Passing),
        Fate::Fatal => Err(Trouble::Final),
    }
}

/// The effect is a row without any constraint, so a double shows; it is written also by the runs that fail.
#[consumer(
    queue = "chaos.transactional",
    retry(max = 3, delay = "200ms"),
    dlq = "dlq.chaos.transactional",
    idempotent(store = "postgres", transactional, lease = "1s"),
    prefetch = 20
)]
async fn transactional(message: u32, mut tx: Tx<'_, Postgres>, attempt: Attempt, ledger: State<Ledger>) -> Result<(), Trouble> {
    ledger.write(TRANSACTIONAL, message, What::Begin(attempt.retries));
    sqlx::query("INSERT INTO effect (message) VALUES ($1)").bind(i64::from(message)).execute(&mut *tx).await?;
    let result = work(message, attempt).await;
    if result.is_err() {
        ledger.write(TRANSACTIONAL, message, What::Failure(attempt.retries));
    }
    result
}

/// The effect is a line in the ledger, which no store knows of.
async fn outside(queue: &str, message: u32, attempt: Attempt, ledger: &Ledger) -> Result<(), Trouble> {
    ledger.write(queue, message, What::Begin(attempt.retries));
    let result = work(message, attempt).await;
    ledger.write(queue, message, if result.is_ok() { What::Effect } else { What::Failure(attempt.retries) });
    result
}

#[consumer(
    queue = "chaos.redis",
    retry(max = 3, delay = "200ms"),
    dlq = "dlq.chaos.redis",
    idempotent(store = "redis", lease = "2s"),
    prefetch = 20
)]
async fn on_redis(message: u32, attempt: Attempt, ledger: State<Ledger>) -> Result<(), Trouble> {
    outside(REDIS, message, attempt, &ledger).await
}

#[consumer(
    queue = "chaos.unique",
    retry(max = 3, delay = "200ms"),
    dlq = "dlq.chaos.unique",
    idempotent(store = "postgres", lease = "2s"),
    prefetch = 20
)]
async fn unique(message: u32, attempt: Attempt, ledger: State<Ledger>) -> Result<(), Trouble> {
    outside(UNIQUE, message, attempt, &ledger).await
}

pub(crate) fn message_id(message: u32) -> String {
    format!("m-{message}")
}

pub(crate) fn number(message_id: &str) -> u32 {
    message_id.strip_prefix("m-").and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("not ours: {message_id}"))
}

/// The guard of a worker; the test itself declares the queues with it, and publishes.
pub(crate) fn guard(broker: &str, redis: &str, postgres: &str, ledger: &Ledger) -> Guard {
    let told = ledger.clone();
    Guard::connect(broker)
        .expect("a usable URL")
        .store("redis", Watched::new(Arc::new(RedisStore::new(redis).expect("a usable URL")), ledger))
        .store("postgres", Watched::new(Arc::new(PostgresStore::new(postgres).expect("a usable URL")), ledger))
        .state(ledger.clone())
        .observe(move |event| tell(&told, event))
        .consumer::<transactional>()
        .consumer::<on_redis>()
        .consumer::<unique>()
}

fn tell(ledger: &Ledger, event: &Event<'_>) {
    let what = match event.kind {
        EventKind::Processed { .. } => What::Processed,
        EventKind::Duplicate | EventKind::DeadLettered { .. } => What::Ended,
        EventKind::Returned => What::Returned,
        EventKind::Busy { .. } => What::Again,
        _ => return,
    };
    ledger.write(event.queue, number(event.message_id.expect("all have one")), what);
}

/// The names of the variables that say where the worker works.
pub(crate) const VARIABLES: [&str; 5] =
    ["MQGUARD_CHAOS_BROKER", "MQGUARD_CHAOS_REDIS", "MQGUARD_CHAOS_POSTGRES", "MQGUARD_CHAOS_LEDGER", "MQGUARD_CHAOS_PROCESS"];

/// Consumes until SIGTERM, or until whoever started this process is gone.
pub(crate) fn consume() {
    let [broker, redis, postgres, ledger, process] = VARIABLES.map(|name| std::env::var(name).expect("it is set"));
    let parent = std::os::unix::process::parent_id();
    let ledger = Ledger::open(ledger.into(), process.parse().expect("a number"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let orphaned = async {
            while std::os::unix::process::parent_id() == parent {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::select! {
            ended = guard(&broker, &redis, &postgres, &ledger).run() => ended.expect("it ends well"),
            () = orphaned => {}
        }
    });
}
