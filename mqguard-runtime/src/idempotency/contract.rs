use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::fingerprint::Fingerprint;
use super::identity::Identity;
use super::transaction::Transactions;

/// Keeps one record for each identity. One conformance suite holds every store to the same answers; see the module's table.
///
/// Every step may be repeated by the same owner after a lost answer, and gives the same answer again.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Asks for the right to run the handler.
    ///
    /// # Errors
    /// [`StoreError`]: whether the claim was made is not known.
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError>;

    /// Tells how a claimed run ended, or that it goes on.
    ///
    /// # Errors
    /// [`StoreError`]: whether it was recorded is not known; the step may be repeated.
    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError>;

    /// Whether the store can be reached and used.
    ///
    /// # Errors
    /// Why not.
    async fn ping(&self) -> Result<(), StoreError>;

    /// What an operator should know before relying on the store, such as an eviction policy that can drop claims. Asked once, at start.
    ///
    /// # Errors
    /// When the store cannot be asked.
    async fn warnings(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Whether what is past its time stays there until it is [purged](Self::purge).
    fn needs_purging(&self) -> bool {
        false
    }

    /// Removes what is past its time; how many records it was. A guard does so every minute, where it is needed.
    ///
    /// # Errors
    /// When the store cannot be asked; what is left is for the next time.
    async fn purge(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Transactions in which handlers write, and which end with the record of their success; `None` when it has none.
    fn transactions(&self) -> Option<Arc<dyn Transactions>> {
        None
    }

    /// Whether the records end with this process.
    fn is_volatile(&self) -> bool {
        false
    }

    /// The same store, with its records in the log of the state machine; `None` when it has none.
    fn state_machine(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

/// Which kind of record a store keeps. The records of the two do not mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// A record is made by the first claim (`mq_consume_record` in SQL stores).
    #[default]
    Unique,
    /// A record may be there before its message, written as `pending` by the producer's own transaction (`mq_msg_log`).
    StateMachine,
}

/// Which run of a message: ordered, generation first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Turn {
    /// Rises with each replay from the dead letters.
    pub generation: u32,
    /// Rises with each retry, counted or not.
    pub step: u32,
}

/// A random token that tells one claim from every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(pub u128);

impl Owner {
    /// A new token.
    #[must_use]
    pub fn random() -> Self {
        Self(fastrand::u128(..))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A question for [`Store::claim`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The message.
    pub identity: Identity,
    /// Which run of it.
    pub turn: Turn,
    /// Of its body.
    pub fingerprint: Fingerprint,
    /// Who asks.
    pub owner: Owner,
    /// How long the claim is held without renewal, by the store's clock.
    pub lease: Duration,
    /// How long the record is kept after its last change.
    pub ttl: Duration,
    /// Lapsed leases (crashes) after which the message is condemned.
    pub max_crashes: u32,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The handler may run.
    Granted {
        /// How often a lease of this message has lapsed before.
        crashes: u32,
    },
    /// Another owner has it; its lease ends in `left`.
    Busy {
        /// Time left of the lease, by the store's clock; more than zero.
        left: Duration,
    },
    /// A later copy of the message exists: drop this one.
    Stale,
    /// Processed, or dead-lettered, already.
    Duplicate,
    /// As stale or duplicate, but the message that was processed under this identity had another body.
    Conflict,
    /// The handler must not run: the dead letter is owed, with this error. The asker is now the owner.
    Letter {
        /// The generation that failed: the letter is of that, whichever delivery found it owed.
        generation: u32,
        /// As given to [`Step::Condemn`]; `None` when the message was condemned because it crashed too often.
        error: Option<String>,
        /// How often a lease of this message has lapsed.
        crashes: u32,
    },
}

/// What entitles to settle a claimed message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The message.
    pub identity: Identity,
    /// Who claimed it.
    pub owner: Owner,
    /// How long the record is kept after this step.
    pub ttl: Duration,
}

/// How a claimed run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It succeeded.
    Complete,
    /// It may run again, from this turn on.
    Release {
        /// The turn that is out; a delivery of an earlier turn is stale.
        next: Turn,
    },
    /// It failed for good: the dead letter is owed.
    Condemn {
        /// What the letter will say, kept until it is out.
        error: String,
        /// How long the owner may take to publish the letter.
        lease: Duration,
    },
    /// The dead letter is out.
    Lettered,
    /// It still runs.
    Renew {
        /// The new lease, from now by the store's clock.
        lease: Duration,
    },
}

/// The answer to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Recorded.
    Applied,
    /// The asker is not the owner any more: nothing was changed.
    Refused,
}

/// The store could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be reached, or the answer was lost. Passes by itself.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// This record cannot be used, as when something else is stored under its key. Other records can.
    #[error("the record `{key}` cannot be used: {reason}")]
    Unusable {
        /// The record's key in the store.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The store refused the request, for a reason that trying again does not change (password, permission, missing command).
    #[error("the store refused: {0}")]
    Refused(String),
}
