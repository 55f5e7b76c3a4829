use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{Claim, ClaimRequest, Fingerprint, Hold, Identity, Owner, Settled, Step, Store, Turn};
use tokio::time::{Instant, sleep, timeout};

/// A lease that does not lapse during a test.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// A lease that lapses.
pub(crate) const SHORT: Duration = Duration::from_millis(100);
/// A retention that does not end during a test.
pub(crate) const DAY: Duration = Duration::from_hours(24);

pub(crate) fn turn(generation: u32, step: u32) -> Turn {
    Turn { generation, step }
}

pub(crate) fn granted(crashes: u32) -> Claim {
    Claim::Granted { crashes }
}

/// One message, as its workers see it.
#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) identity: Identity,
    pub(crate) body: Fingerprint,
    pub(crate) lease: Duration,
    pub(crate) ttl: Duration,
    pub(crate) max_crashes: u32,
}

impl Message {
    /// One that no store has seen.
    pub(crate) fn new(store: &Arc<dyn Store>, lease: Duration) -> Self {
        let identity = Identity::new("conformance", "", Owner::random().to_string());
        Self { store: Arc::clone(store), identity, body: Fingerprint(u64::MAX), lease, ttl: DAY, max_crashes: 3 }
    }

    pub(crate) async fn claim(&self, turn: Turn, owner: Owner) -> Claim {
        let Self { identity, lease, ttl, max_crashes, .. } = self.clone();
        let request = ClaimRequest { identity, turn, fingerprint: self.body, owner, lease, ttl, max_crashes };
        self.store.claim(&request).await.expect("the store answers")
    }

    /// Claims for the first time.
    pub(crate) async fn claimed(&self) -> Owner {
        let owner = Owner::random();
        assert_eq!(self.claim(turn(0, 0), owner).await, granted(0));
        owner
    }

    /// Claims as soon as it is not busy any more.
    pub(crate) async fn claim_when_free(&self, turn: Turn, owner: Owner) -> Claim {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            match self.claim(turn, owner).await {
                Claim::Busy { left } if Instant::now() < end => {
                    assert!(left > Duration::ZERO);
                    sleep(left).await;
                }
                answer => return answer,
            }
        }
    }

    pub(crate) async fn settle(&self, owner: Owner, step: Step) -> Settled {
        let hold = Hold { identity: self.identity.clone(), owner, ttl: self.ttl };
        self.store.settle(&hold, &step).await.expect("the store answers")
    }

    pub(crate) async fn applied(&self, owner: Owner, step: Step) {
        let shown = format!("{step:?}");
        assert_eq!(self.settle(owner, step).await, Settled::Applied, "{shown}");
    }

    pub(crate) async fn refused(&self, owner: Owner, step: Step) {
        let shown = format!("{step:?}");
        assert_eq!(self.settle(owner, step).await, Settled::Refused, "{shown}");
    }

    /// Any claim by somebody else is answered as busy.
    pub(crate) async fn is_busy(&self, turn: Turn) -> Duration {
        match self.claim(turn, Owner::random()).await {
            Claim::Busy { left } => left,
            other => panic!("not busy but {other:?}"),
        }
    }
}

/// Waits until the store's clock has gone on by this much, without touching the message under test.
pub(crate) async fn pass(store: &Arc<dyn Store>, time: Duration) {
    let other = Message::new(store, time);
    other.claimed().await;
    let free = other.claim_when_free(turn(0, 0), Owner::random());
    assert_eq!(timeout(Duration::from_secs(20), free).await, Ok(granted(1)));
}

pub(crate) fn release(generation: u32, step: u32) -> Step {
    Step::Release { next: turn(generation, step) }
}

pub(crate) fn condemn(error: &str, lease: Duration) -> Step {
    Step::Condemn { error: error.into(), lease }
}
