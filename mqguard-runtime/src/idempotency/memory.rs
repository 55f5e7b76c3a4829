use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::contract::{Claim, ClaimRequest, Hold, Mode, Settled, Step, Store, StoreError};
use super::identity::Identity;
use super::protocol::{self, Record};

/// Keeps the records in this process: for tests and the embedded broker.
///
/// Its clock is tokio's, so that it follows a paused one.
pub struct MemoryStore {
    started: Instant,
    mode: Mode,
    tables: Arc<Tables>,
}

/// The records of each mode, apart as in two tables.
#[derive(Default)]
struct Tables {
    unique: Mutex<Records>,
    log: Mutex<Records>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self { started: Instant::now(), mode: Mode::Unique, tables: Arc::default() }
    }

    /// The same store, seen by consumers of this mode.
    #[must_use]
    pub fn in_mode(&self, mode: Mode) -> Self {
        Self { started: self.started, mode, tables: Arc::clone(&self.tables) }
    }

    /// What is known of a message now.
    #[must_use]
    pub fn record(&self, identity: &Identity) -> Option<Record> {
        let now = self.now();
        self.lock().get(identity.digest(), now).cloned()
    }

    /// How many messages are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().kept.len()
    }

    /// Whether no message is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Milliseconds since the store was made.
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        let records = match self.mode {
            Mode::Unique => &self.tables.unique,
            Mode::StateMachine => &self.tables.log,
        };
        // Nothing that runs under the lock leaves the records half changed.
        records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<A>(
        &self,
        identity: &Identity,
        ttl: Duration,
        transition: impl FnOnce(Option<&Record>, u64) -> (A, Option<Record>),
    ) -> A {
        let digest = identity.digest();
        let mut records = self.lock();
        // Read under the lock: two askers must not see the clock in an order other than theirs.
        let now = self.now();
        records.purge(now);
        let (answer, changed) = transition(records.get(digest, now), now);
        if let Some(record) = changed {
            records.put(digest, record, now, ttl);
        }
        answer
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("records", &self.len()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        Ok(self.change(&request.identity, request.ttl, |record, now| protocol::claim(record, request, now)))
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        Ok(self.change(&hold.identity, hold.ttl, |record, now| protocol::settle(record, hold, step, now)))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_volatile(&self) -> bool {
        true
    }

    fn state_machine(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.in_mode(Mode::StateMachine)))
    }
}

/// How many forgotten records one access removes at most. It adds one at most, so what is kept past its time shrinks.
const PURGE: usize = 8;

/// The records, and an index of when to forget them.
#[derive(Default)]
struct Records {
    kept: HashMap<[u8; 16], Kept>,
    ends: BTreeSet<(u64, [u8; 16])>,
}

struct Kept {
    record: Record,
    until: u64,
}

impl Records {
    fn get(&self, digest: [u8; 16], now: u64) -> Option<&Record> {
        self.kept.get(&digest).filter(|kept| kept.until > now).map(|kept| &kept.record)
    }

    fn put(&mut self, digest: [u8; 16], record: Record, now: u64, ttl: Duration) {
        let until = record.kept_until(now, ttl);
        if let Some(old) = self.kept.insert(digest, Kept { record, until }) {
            self.ends.remove(&(old.until, digest));
        }
        self.ends.insert((until, digest));
    }

    fn purge(&mut self, now: u64) {
        for _ in 0..PURGE {
            let Some(&(until, digest)) = self.ends.first() else { return };
            if until > now {
                return;
            }
            self.ends.pop_first();
            self.kept.remove(&digest);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::idempotency::{Fingerprint, Owner, Turn};

    fn request(id: usize, ttl: Duration) -> ClaimRequest {
        ClaimRequest {
            identity: Identity::new("q", "", id.to_string()),
            turn: Turn::default(),
            fingerprint: Fingerprint(0),
            owner: Owner::random(),
            lease: Duration::from_secs(1),
            ttl,
            max_crashes: 3,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_by_what_is_within_its_ttl() {
        let store = MemoryStore::new();
        for id in 0..10_000 {
            store.claim(&request(id, Duration::from_secs(10))).await.unwrap();
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert!(store.len() <= 101, "{} records", store.len());
        let records = store.lock();
        assert_eq!(records.ends.len(), records.kept.len());
    }

    #[tokio::test(start_paused = true)]
    async fn what_expired_at_once_is_removed_little_by_little() {
        let store = MemoryStore::new();
        for id in 0..1_000 {
            store.claim(&request(id, Duration::from_secs(10))).await.unwrap();
        }
        tokio::time::advance(Duration::from_secs(11)).await;
        let last = request(999, Duration::from_secs(10));
        assert_eq!((store.len(), store.record(&last.identity)), (1_000, None), "forgotten before it is removed");
        assert_eq!(store.claim(&last).await, Ok(Claim::Granted { crashes: 0 }));
        for id in 1_000..1_199 {
            store.claim(&request(id, Duration::from_secs(10))).await.unwrap();
        }
        assert_eq!(store.len(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn the_records_of_the_two_modes_do_not_mix() {
        let store = MemoryStore::new();
        let (log, claim) = (store.state_machine().unwrap(), request(1, Duration::from_secs(10)));
        assert_eq!(store.claim(&claim).await, Ok(Claim::Granted { crashes: 0 }));
        let other = ClaimRequest { owner: Owner::random(), ..claim.clone() };
        assert_eq!(log.claim(&other).await, Ok(Claim::Granted { crashes: 0 }), "it is not there");
        let late = ClaimRequest { owner: Owner::random(), ..claim.clone() };
        let again = store.state_machine().unwrap();
        assert!(matches!(again.claim(&late).await, Ok(Claim::Busy { .. })), "each view sees the same");
        let hold = Hold { identity: claim.identity.clone(), owner: claim.owner, ttl: claim.ttl };
        assert_eq!(log.settle(&hold, &Step::Complete).await, Ok(Settled::Refused));
        assert_eq!((store.len(), store.in_mode(Mode::StateMachine).len()), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn renewing_adds_nothing() {
        let store = MemoryStore::new();
        let claim = request(1, Duration::from_secs(10));
        store.claim(&claim).await.unwrap();
        let hold = Hold { identity: claim.identity.clone(), owner: claim.owner, ttl: claim.ttl };
        for _ in 0..1_000 {
            store.settle(&hold, &Step::Renew { lease: claim.lease }).await.unwrap();
            tokio::time::advance(Duration::from_millis(500)).await;
        }
        assert_eq!((store.len(), store.lock().ends.len()), (1, 1));
    }
}
