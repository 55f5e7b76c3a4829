use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::contract::{Claim, ClaimRequest, Hold, Owner, Settled, Step, Store, StoreError, Turn};
use super::fingerprint::Fingerprint;
use super::identity::Identity;
use super::keeper::{Kept, LeaseKeeper};
use super::outage::{Outage, in_time, late};
use super::transaction::{Transaction, Transactions};
use crate::consumer::{ConsumerError, IdempotentSpec, IdentityRule, OnStoreDown};

/// One consumer's view of its store: what the pipeline asks.
pub(crate) struct Ledger {
    spec: IdempotentSpec,
    queue: &'static str,
    store: Arc<dyn Store>,
    keeper: Arc<LeaseKeeper>,
    /// When messages run though the store is away.
    outage: Option<Outage>,
    /// Of a transactional consumer.
    transactions: Option<Arc<dyn Transactions>>,
}

/// Lapsed leases after which a message is condemned as a crash loop.
pub(crate) const MAX_CRASHES: u32 = 3;

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

/// The right to run.
#[derive(Debug)]
pub(crate) enum Granted {
    Claimed {
        kept: Kept,
        crashes: u32,
    },
    /// The store is away, and the message runs without a claim. One that was asked for may have been made.
    Unguarded(Box<Unguarded>),
}

#[derive(Debug)]
pub(crate) struct Unguarded {
    pub(crate) error: StoreError,
    pub(crate) unsure: Option<Hold>,
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
        // What is written in a transaction is not committed under a lost lease: there is no need to cancel a run that may have one.
        let outlasts = spec.on_store_down == OnStoreDown::Run || spec.transactional;
        let keeper = LeaseKeeper::start(Arc::clone(&store), spec.lease, outlasts);
        let outage = (spec.on_store_down == OnStoreDown::Run).then(|| Outage::new(queue));
        let transactions = spec.transactional.then(|| store.transactions()).flatten();
        Self { spec, queue, store, keeper, outage, transactions }
    }

    /// A transaction for the handler, if it is to have one.
    pub(crate) async fn begin(&self) -> Result<Option<Box<dyn Transaction>>, StoreError> {
        match &self.transactions {
            Some(transactions) => transactions.begin().await.map(Some),
            None => Ok(None),
        }
    }

    /// There when messages run though the store is away.
    pub(crate) fn outage(&self) -> Option<&Outage> {
        self.outage.as_ref()
    }

    /// Whether messages run in spite of this error. A refusal, or a damaged record, is nothing that passes by itself.
    pub(crate) fn runs_in_spite_of(&self, error: &StoreError) -> bool {
        self.outage.is_some() && matches!(error, StoreError::Unavailable(_))
    }

    /// Whether the store can be reached and used.
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        if self.outage.is_none() {
            return self.store.ping().await;
        }
        let twice = async {
            match self.store.ping().await {
                // As a claim is asked for again: one answer that is lost is no outage.
                Err(StoreError::Unavailable(_)) => self.store.ping().await,
                answer => answer,
            }
        };
        in_time(twice).await
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

    /// Asks for the right to run.
    pub(crate) async fn claim(&self, identity: Identity, turn: Turn, body: &[u8]) -> Result<Granted, NotGranted> {
        // Different messages about one key are meant to be one.
        let fingerprint = if identity.message_id().is_empty() { Fingerprint(0) } else { Fingerprint::of(body) };
        let owner = Owner::random();
        let IdempotentSpec { lease, ttl, .. } = self.spec;
        let request = ClaimRequest { identity, turn, fingerprint, owner, lease, ttl, max_crashes: MAX_CRASHES };
        let answer = match &self.outage {
            None => self.ask(&request).await,
            // Boxed, as it is rare.
            Some(outage) => match outage.why() {
                Some(error) => return Ok(unguarded(error, None)),
                None => Box::pin(in_time(self.ask(&request))).await,
            },
        };
        let hold = Hold { identity: request.identity, owner, ttl };
        let (answer, since) = match (answer, &self.outage) {
            (Ok(answer), _) => answer,
            (Err(error @ StoreError::Unavailable(_)), Some(outage)) => {
                outage.begin(&error);
                return Ok(unguarded(error, Some(hold)));
            }
            (Err(error), _) => return Err(NotGranted::Failed(error)),
        };
        let keep = || self.keeper.keep(hold, since);
        match answer {
            Claim::Granted { crashes } => Ok(Granted::Claimed { kept: keep(), crashes }),
            Claim::Letter { generation, error, crashes } => {
                Err(NotGranted::Letter(keep(), OwedLetter { generation, error, crashes }))
            }
            Claim::Busy { left } => Err(NotGranted::Busy(left)),
            Claim::Stale => Err(NotGranted::Stale),
            Claim::Duplicate => Err(NotGranted::Duplicate),
            Claim::Conflict => Err(NotGranted::Conflict),
        }
    }

    /// The answer to a claim, and when it was asked for. One that is lost is asked for again by the same owner, which the store
    /// recognises.
    async fn ask(&self, request: &ClaimRequest) -> Result<(Claim, Instant), StoreError> {
        let mut since = Instant::now();
        let answer = match self.store.claim(request).await {
            Err(StoreError::Unavailable(_)) => {
                since = Instant::now();
                self.store.claim(request).await
            }
            answer => answer,
        };
        Ok((answer?, since))
    }

    /// Records a step once; an error leaves open whether it was recorded.
    pub(crate) async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        let answer = self.store.settle(hold, step);
        // Boxed, as it is rare.
        if self.outage.is_some() { Box::pin(in_time(answer)).await } else { answer.await }
    }

    /// The same, in this time.
    pub(crate) async fn settle_within(&self, patience: Duration, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        tokio::time::timeout(patience, self.settle(hold, step)).await.unwrap_or_else(|_| Err(late(patience)))
    }
}

fn unguarded(error: StoreError, unsure: Option<Hold>) -> Granted {
    Granted::Unguarded(Box::new(Unguarded { error, unsure }))
}
