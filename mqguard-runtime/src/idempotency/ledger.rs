use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::contract::{Claim, ClaimRequest, Hold, Owner, Settled, Step, Store, StoreError, Turn};
use super::fingerprint::Fingerprint;
use super::identity::Identity;
use super::keeper::{Kept, LeaseKeeper};
use crate::consumer::{ConsumerError, IdempotentSpec, IdentityRule};

/// One consumer's view of its store: what the pipeline asks.
pub(crate) struct Ledger {
    spec: IdempotentSpec,
    queue: &'static str,
    store: Arc<dyn Store>,
    keeper: Arc<LeaseKeeper>,
}

/// Lapsed leases after which a message is condemned as a crash loop.
const MAX_CRASHES: u32 = 3;

/// What identifies a message to the consumer of `queue`; `None` when it has nothing that does.
pub(crate) fn identity<'a>(
    spec: &IdempotentSpec,
    queue: &'static str,
    business_key: Option<&'a str>,
    message_id: Option<&'a str>,
) -> Option<Identity> {
    let given = |part: Option<&'a str>| part.filter(|text| !text.trim().is_empty());
    let (key, id) = match spec.identity {
        IdentityRule::KeyAndMessageId => (given(business_key), given(message_id)),
        IdentityRule::Key => (given(business_key), None),
        IdentityRule::MessageId => (None, given(message_id)),
    };
    if key.is_none() && id.is_none() {
        return None;
    }
    Some(Identity::new(queue, key.unwrap_or_default(), id.unwrap_or_default()))
}

/// Why a claim does not give the right to run, with what it takes to go on.
#[derive(Debug)]
pub(crate) enum NotGranted {
    /// A letter is owed; the claim is for sending it.
    Letter(Kept, OwedLetter),
    /// Another owner may be at it for this long.
    Busy(Duration),
    Stale,
    Duplicate,
    /// Another message was processed under this identity.
    Conflict,
    Failed(StoreError),
}

/// See [`Claim::Letter`].
#[derive(Debug)]
pub(crate) struct OwedLetter {
    pub(crate) generation: u32,
    pub(crate) error: Option<String>,
    pub(crate) crashes: u32,
}

impl Ledger {
    pub(crate) fn new(spec: IdempotentSpec, queue: &'static str, store: Arc<dyn Store>) -> Self {
        let keeper = LeaseKeeper::start(Arc::clone(&store), spec.lease);
        Self { spec, queue, store, keeper }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn spec(&self) -> &IdempotentSpec {
        &self.spec
    }

    /// An error of the store, with its name.
    pub(crate) fn about(&self, error: StoreError) -> ConsumerError {
        ConsumerError::Store { name: self.spec.store, error }
    }

    /// What identifies a message; `None` when it has nothing that does. Blank ids are none.
    pub(crate) fn identity<'a>(&self, business_key: Option<&'a str>, message_id: Option<&'a str>) -> Option<Identity> {
        identity(&self.spec, self.queue, business_key, message_id)
    }

    /// Asks for the right to run. An answer that is lost once is asked for again by the same owner, which the store recognises.
    pub(crate) async fn claim(&self, identity: Identity, turn: Turn, body: &[u8]) -> Result<Kept, NotGranted> {
        // Different messages about one key are meant to be one.
        let fingerprint = if identity.message_id().is_empty() { Fingerprint(0) } else { Fingerprint::of(body) };
        let owner = Owner::random();
        let IdempotentSpec { lease, ttl, .. } = self.spec;
        let request = ClaimRequest { identity, turn, fingerprint, owner, lease, ttl, max_crashes: MAX_CRASHES };
        let mut since = Instant::now();
        let answer = match self.store.claim(&request).await {
            Err(StoreError::Unavailable(_)) => {
                since = Instant::now();
                self.store.claim(&request).await
            }
            answer => answer,
        };
        let keep = || self.keeper.keep(Hold { identity: request.identity, owner, ttl }, since);
        match answer.map_err(NotGranted::Failed)? {
            Claim::Granted { .. } => Ok(keep()),
            Claim::Letter { generation, error, crashes } => {
                Err(NotGranted::Letter(keep(), OwedLetter { generation, error, crashes }))
            }
            Claim::Busy { left } => Err(NotGranted::Busy(left)),
            Claim::Stale => Err(NotGranted::Stale),
            Claim::Duplicate => Err(NotGranted::Duplicate),
            Claim::Conflict => Err(NotGranted::Conflict),
        }
    }

    /// Records a step once; an error leaves open whether it was recorded.
    pub(crate) async fn settle(&self, kept: &Kept, step: &Step) -> Result<Settled, StoreError> {
        self.store.settle(kept.hold(), step).await
    }
}
