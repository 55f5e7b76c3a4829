//! What a guard says about its consumers.

use std::fmt;

use crate::consumer::ConsumerError;

/// The state of one consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Not connected yet.
    Starting,
    /// Messages are being taken.
    Consuming,
    /// Messages are being taken and run without protection: the idempotency store is away, and the consumer has
    /// `on_store_down = "run"`.
    Degraded {
        /// What the store said.
        reason: String,
    },
    /// Messages are being taken, but the retry or the dead letter of one cannot be put where it has to go: the broker refuses it, or its
    /// queue is not there. The message is kept, and holds its place among those that run, until it can.
    Stuck {
        /// What keeps it, and what helps.
        reason: String,
    },
    /// The broker cannot be reached or ended the subscription; it is tried again.
    Reconnecting {
        /// What happened.
        reason: String,
    },
    /// The idempotency store cannot be used; nothing is consumed until it can.
    Paused {
        /// What the store said.
        reason: String,
    },
    /// Shutting down: nothing new is taken.
    Draining,
    /// Ended as asked.
    Stopped,
    /// Ended by something that does not pass by itself.
    Failed {
        /// What it was.
        error: ConsumerError,
    },
}

impl Status {
    /// Whether messages are being taken, and get where they have to go.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        matches!(self, Self::Consuming | Self::Degraded { .. })
    }

    /// Whether they run without protection.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        matches!(self, Self::Degraded { .. })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::Consuming => f.write_str("consuming"),
            Self::Degraded { reason } => write!(f, "consuming without protection until the store is back: {reason}"),
            Self::Stuck { reason } => write!(f, "consuming, but a message is stuck: {reason}"),
            Self::Reconnecting { reason } => write!(f, "not consuming, trying to reconnect: {reason}"),
            Self::Paused { reason } => write!(f, "paused until the store is back: {reason}"),
            Self::Draining => f.write_str("draining"),
            Self::Stopped => f.write_str("stopped"),
            Self::Failed { error } => write!(f, "failed: {error}"),
        }
    }
}

/// The state of all consumers of a guard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Each consumer's queue and state.
    pub consumers: Vec<(&'static str, Status)>,
}

impl Health {
    /// Whether every consumer takes messages.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.consumers.iter().all(|(_, status)| status.is_healthy())
    }

    /// Whether a consumer's messages run without protection.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.consumers.iter().any(|(_, status)| status.is_degraded())
    }
}
