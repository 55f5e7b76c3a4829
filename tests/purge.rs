//! A guard has its stores forget what is past its time.
#![allow(clippy::expect_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use mqguard::idempotency::{Claim, ClaimRequest, Hold, MemoryStore, Mode, Settled, Step, Store, StoreError};
use mqguard::{Guard, consumer};

#[consumer(queue = "one", idempotent = "sqlite")]
async fn one(_body: u32) {}

#[consumer(queue = "another", idempotent = "sqlite")]
async fn another(_body: u32) {}

#[consumer(queue = "logged", idempotent(store = "sqlite", mode = "state_machine"))]
async fn logged(_body: u32) {}

#[consumer(queue = "elsewhere", idempotent = "redis")]
async fn elsewhere(_body: u32) {}

/// Counts how often it is purged, in each mode.
#[derive(Debug, Clone)]
struct Counted {
    records: Arc<MemoryStore>,
    mode: Mode,
    needs: bool,
    purges: Arc<[AtomicUsize; 2]>,
}

impl Counted {
    fn new(needs: bool) -> Self {
        Self { records: Arc::default(), mode: Mode::Unique, needs, purges: Arc::default() }
    }

    fn purges(&self) -> [usize; 2] {
        self.purges.each_ref().map(|count| count.load(Ordering::SeqCst))
    }
}

#[async_trait]
impl Store for Counted {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        self.records.claim(request).await
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        self.records.settle(hold, step).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn needs_purging(&self) -> bool {
        self.needs
    }

    async fn purge(&self) -> Result<u64, StoreError> {
        let before = self.purges[usize::from(self.mode == Mode::StateMachine)].fetch_add(1, Ordering::SeqCst);
        if before == 0 { Err(StoreError::Unavailable("not now".into())) } else { Ok(1) }
    }

    fn state_machine(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(Self { mode: Mode::StateMachine, ..self.clone() }))
    }
}

#[tokio::test(start_paused = true)]
async fn each_store_is_purged_every_minute_while_the_guard_runs() {
    let (purged, by_itself) = (Counted::new(true), Counted::new(false));
    let guard = Guard::embedded().consumer::<one>().consumer::<another>().consumer::<logged>().consumer::<elsewhere>();
    let guard = guard.store("sqlite", purged.clone()).store("redis", by_itself.clone());
    let running = guard.start().await.expect("it starts");
    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    let counts = purged.purges();
    assert!(counts.iter().all(|count| (20..=60).contains(count)), "{counts:?} in half an hour, for three consumers in two modes");
    running.shutdown().await.expect("it ends");
    let counts = purged.purges();
    tokio::time::sleep(Duration::from_secs(10 * 60)).await;
    assert_eq!(purged.purges(), counts, "nothing after the end");
    assert_eq!(by_itself.purges(), [0, 0]);
}
