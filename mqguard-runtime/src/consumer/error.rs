use crate::broker::BrokerError;
use crate::idempotency::StoreError;

/// What keeps a consumer from consuming.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConsumerError {
    /// The broker said so.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The idempotency store said so.
    #[error("store `{name}`: {error}")]
    Store {
        /// The store.
        name: &'static str,
        /// What it said.
        error: StoreError,
    },
}

impl ConsumerError {
    /// Whether it passes by itself. A refusal does when the consumer was let in before: who changes a password can change it back.
    pub(super) fn is_passing(&self, has_consumed: bool) -> bool {
        match self {
            Self::Broker(error) => error.is_transient() || (has_consumed && matches!(error, BrokerError::Refused(_))),
            Self::Store { error, .. } => has_consumed || matches!(error, StoreError::Unavailable(_)),
        }
    }
}
