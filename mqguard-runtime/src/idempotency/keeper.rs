use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::contract::{Hold, Settled, Step, Store, StoreError};

/// Renews the leases of running handlers from a task of its own, so that a handler that is slow to yield does not lose its lease.
pub(crate) struct LeaseKeeper {
    store: Arc<dyn Store>,
    lease: Duration,
    /// Whether a run goes on when its lease could not be renewed in time.
    outlasts: bool,
    kept: Mutex<HashMap<u64, Entry>>,
    next: AtomicU64,
}

#[derive(Clone)]
struct Entry {
    lease: Arc<Lease>,
    /// When the last lease that is known to be granted began, at the earliest.
    since: Instant,
}

struct Lease {
    hold: Hold,
    lost: CancellationToken,
    why_lost: OnceLock<&'static str>,
}

/// A claim whose lease is being renewed; dropped, it no longer is.
pub(crate) struct Kept {
    keeper: Arc<LeaseKeeper>,
    id: u64,
    lease: Arc<Lease>,
}

impl Kept {
    pub(crate) fn hold(&self) -> &Hold {
        &self.lease.hold
    }

    /// Cancelled when the lease is lost.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lease.lost
    }

    pub(crate) fn why_lost(&self) -> &'static str {
        self.lease.why_lost.get().copied().unwrap_or_default()
    }
}

impl LeaseKeeper {
    /// Starts the keeper; its task ends when the keeper is dropped.
    pub(crate) fn start(store: Arc<dyn Store>, lease: Duration, outlasts: bool) -> Arc<Self> {
        let keeper = Arc::new(Self { store, lease, outlasts, kept: Mutex::default(), next: AtomicU64::new(0) });
        tokio::spawn(renew_all(Arc::downgrade(&keeper)));
        keeper
    }

    /// Keeps the lease of `hold`, which was granted no earlier than `since`.
    pub(crate) fn keep(self: &Arc<Self>, hold: Hold, since: Instant) -> Kept {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let lease = Arc::new(Lease { hold, lost: CancellationToken::new(), why_lost: OnceLock::new() });
        self.lock().insert(id, Entry { lease: Arc::clone(&lease), since });
        Kept { keeper: Arc::clone(self), id, lease }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often it is looked for leases to renew.
    fn tick(&self) -> Duration {
        self.lease / 6
    }

    /// When to look again: soon, or when a lease ends before. A run must not outlast its lease, somebody else may run then.
    fn next_look(&self) -> Instant {
        let soon = Instant::now() + self.tick();
        if self.outlasts {
            return soon;
        }
        let ends = self.lock().values().map(|entry| entry.since + self.lease).min();
        ends.map_or(soon, |ends| ends.min(soon))
    }

    /// Renews every lease of which a third has passed.
    async fn renew_due(&self) {
        let due: Vec<(u64, Entry)> = {
            let kept = self.lock();
            let is_due = |entry: &Entry| entry.since.elapsed() >= self.lease / 3;
            kept.iter().filter(|(_, entry)| is_due(entry)).map(|(id, entry)| (*id, entry.clone())).collect()
        };
        join_all(due.into_iter().map(|(id, entry)| self.renew(id, entry))).await;
    }

    async fn renew(&self, id: u64, entry: Entry) {
        let (asked, ends) = (Instant::now(), entry.since + self.lease);
        // When the runtime was blocked until long after the end, only the store knows whether somebody took over.
        let is_late = asked.saturating_duration_since(ends) > self.tick();
        let answer_by = if is_late || self.outlasts { asked + self.lease / 3 } else { ends.min(asked + self.lease / 3) };
        let step = Step::Renew { lease: self.lease };
        match tokio::time::timeout_at(answer_by, self.store.settle(&entry.lease.hold, &step)).await {
            Ok(Ok(Settled::Applied)) => {
                if let Some(entry) = self.lock().get_mut(&id) {
                    entry.since = asked;
                }
            }
            Ok(Ok(Settled::Refused)) => self.lose(id, &entry, "its record is gone or another worker's"),
            // No answer is no proof: the lease holds until its time is over.
            Ok(Err(_)) | Err(_) if Instant::now() < ends => {}
            // The run goes on without a lease. Whether another worker took over is told when the store is back.
            Ok(Err(StoreError::Unavailable(_))) | Err(_) if self.outlasts => {
                tracing::debug!(identity = %entry.lease.hold.identity, "the lease is over and cannot be renewed; the run goes on");
            }
            Ok(Err(_)) | Err(_) => self.lose(id, &entry, "it could not be renewed in time"),
        }
    }

    fn lose(&self, id: u64, entry: &Entry, why: &'static str) {
        // A delivery that was settled in the meantime has nothing to lose; one whose run has ended tells by its settlement.
        if self.lock().remove(&id).is_some() {
            tracing::debug!(identity = %entry.lease.hold.identity, "lease lost, {why}");
            // Nobody else sets it.
            let _ = entry.lease.why_lost.set(why);
            entry.lease.lost.cancel();
        }
    }
}

async fn renew_all(keeper: Weak<LeaseKeeper>) {
    while let Some(next_look) = keeper.upgrade().map(|keeper| keeper.next_look()) {
        tokio::time::sleep_until(next_look).await;
        match keeper.upgrade() {
            Some(keeper) => keeper.renew_due().await,
            None => return,
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.keeper.lock().remove(&self.id);
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({})", self.hold().identity)
    }
}
