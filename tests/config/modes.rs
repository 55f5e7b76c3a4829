//! Which records a store keeps: those of the first claims, or the log of the state machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mqguard::idempotency::{Claim, ClaimRequest, Hold, Mode, Settled, Step, Store, StoreError};
use mqguard::{Guard, MemoryStore, consumer};
use serde_json::Value;

use crate::harness::{Scene, identity, s};
use crate::{mistakes, says, server};

#[consumer(queue = "unique", dlq = "dlq.unique", idempotent = "mysql")]
async fn unique(_body: Value) {}

#[consumer(queue = "logged", dlq = "dlq.logged", idempotent(store = "mysql", mode = "state_machine"))]
async fn logged(_body: Value) {}

#[consumer(queue = "logged.too", dlq = "dlq.logged", idempotent(store = "mysql", mode = "state_machine"))]
async fn logged_too(_body: Value) {}

#[consumer(queue = "by.postgres", dlq = "dlq.by.postgres", idempotent = "postgres")]
async fn by_postgres(_body: Value) {}

#[consumer(queue = "by.sqlite", dlq = "dlq.by.sqlite", idempotent = "sqlite")]
async fn by_sqlite(_body: Value) {}

/// A store that may have a log, and counts how often it is asked for.
#[derive(Debug)]
struct Asked {
    records: Arc<MemoryStore>,
    has_log: bool,
    for_log: Arc<AtomicUsize>,
}

impl Asked {
    fn new(has_log: bool) -> Self {
        Self { records: Arc::default(), has_log, for_log: Arc::default() }
    }
}

#[async_trait::async_trait]
impl Store for Asked {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        self.records.claim(request).await
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        self.records.settle(hold, step).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn warnings(&self) -> Result<Vec<String>, StoreError> {
        Ok(vec!["look out".into()])
    }

    fn state_machine(&self) -> Option<Arc<dyn Store>> {
        self.for_log.fetch_add(1, Ordering::Relaxed);
        self.has_log.then(|| self.records.state_machine()).flatten()
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_without_a_state_machine() {
    for guard in [Guard::embedded(), Guard::with_broker(server())] {
        let said = mistakes(guard.store("mysql", Asked::new(false)).consumer::<unique>().consumer::<logged>()).await;
        assert_eq!(said.len(), 1, "{said:?}");
        says(&said, &["consumer `logged` (queue `logged`)", "store `mysql`", "no state machine", "postgres", "Redis has not"]);
    }
}

/// What the log is made of, such as connections, is there once.
#[tokio::test(start_paused = true)]
async fn the_consumers_of_a_store_share_its_log_and_its_warnings() {
    let logs = crate::harness::Logs::capture(tracing::Level::WARN);
    let store = Asked::new(true);
    let (records, for_log) = (Arc::clone(&store.records), Arc::clone(&store.for_log));
    let guard = Guard::embedded().store("mysql", store);
    let running = guard.consumer::<logged>().consumer::<logged_too>().consumer::<unique>().start().await.unwrap();
    for queue in ["logged", "logged.too", "unique"] {
        running.publisher().json(&1).unwrap().message_id("m-1").to_queue(queue).await.unwrap();
    }
    tokio::time::sleep(s(1)).await;
    assert_eq!(for_log.load(Ordering::Relaxed), 1);
    assert_eq!(logs.with("store `mysql`: look out").len(), 1, "{}", logs.text());
    let log = records.in_mode(Mode::StateMachine);
    assert_eq!((records.len(), log.len()), (1, 2));
    assert!(log.record(&identity("logged.too", "", "m-1")).is_some() && records.record(&identity("unique", "", "m-1")).is_some());
}

#[tokio::test(start_paused = true)]
async fn on_the_embedded_broker_the_memory_store_stands_in_for_each_of_them() {
    let scene = Scene::smooth();
    let observer = scene.journal.clone();
    let guard = Guard::embedded().observe(move |event| observer.tell(event));
    let guard = guard.consumer::<logged>().consumer::<unique>().consumer::<by_postgres>().consumer::<by_sqlite>();
    let running = guard.start().await.unwrap();
    for queue in ["logged", "unique", "by.postgres", "by.sqlite"] {
        for _ in 0..2 {
            running.publisher().json(&1).unwrap().message_id("m-1").to_queue(queue).await.unwrap();
        }
    }
    tokio::time::sleep(s(10)).await;
    let book = scene.journal.book();
    assert_eq!((book.count("processed"), book.count("duplicate")), (4, 4), "{book}");
}
