//! The naive algorithms, as stores. What they cannot say, they cannot: there is no busy, no owner, no turn.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mqguard::idempotency::{Claim, ClaimRequest, Hold, Settled, Step, Store, StoreError};
use tokio::time::Instant;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const GRANTED: Claim = Claim::Granted { crashes: 0 };

/// `SET key 1 NX`, or `INSERT IGNORE`: who comes second sees a duplicate.
#[derive(Debug)]
pub(crate) struct FirstCome {
    seen: Mutex<HashSet<[u8; 16]>>,
    /// Whether the key is deleted when the handler fails.
    forgives: bool,
}

impl FirstCome {
    pub(crate) fn new() -> Self {
        Self { seen: Mutex::default(), forgives: false }
    }

    pub(crate) fn forgiving() -> Self {
        Self { forgives: true, ..Self::new() }
    }
}

#[async_trait::async_trait]
impl Store for FirstCome {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let is_first = lock(&self.seen).insert(request.identity.digest());
        Ok(if is_first { GRANTED } else { Claim::Duplicate })
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        if self.forgives && matches!(step, Step::Release { .. }) {
            lock(&self.seen).remove(&hold.identity.digest());
        }
        Ok(Settled::Applied)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// `SELECT`, and when it is not there, run and `INSERT`.
#[derive(Debug, Default)]
pub(crate) struct LookedUp(Mutex<HashSet<[u8; 16]>>);

#[async_trait::async_trait]
impl Store for LookedUp {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let is_done = lock(&self.0).contains(&request.identity.digest());
        Ok(if is_done { Claim::Duplicate } else { GRANTED })
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        if *step == Step::Complete {
            lock(&self.0).insert(hold.identity.digest());
        }
        Ok(Settled::Applied)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// `SET key 1 NX PX lease`, then the mark of success, or `DEL key`: a lease, but nobody's.
#[derive(Debug, Default)]
pub(crate) struct Unowned(Mutex<HashMap<[u8; 16], Option<Instant>>>);

#[async_trait::async_trait]
impl Store for Unowned {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let mut keys = lock(&self.0);
        let key = request.identity.digest();
        match keys.get(&key) {
            Some(None) => Ok(Claim::Duplicate),
            Some(Some(until)) if *until > Instant::now() => Ok(Claim::Duplicate),
            _ => {
                keys.insert(key, Some(Instant::now() + request.lease));
                Ok(GRANTED)
            }
        }
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        let mut keys = lock(&self.0);
        match step {
            Step::Complete => drop(keys.insert(hold.identity.digest(), None)),
            Step::Release { .. } | Step::Condemn { .. } => drop(keys.remove(&hold.identity.digest())),
            Step::Lettered | Step::Renew { .. } => {}
        }
        Ok(Settled::Applied)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
