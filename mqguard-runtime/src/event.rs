//! What happens to deliveries, for metrics and alerts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::consumer::{Attempt, ErrorText};
use crate::dead_letter::Reason;
use crate::idempotency::StoreError;

/// Something that happened to a delivery. See [`Guard::observe`](crate::Guard::observe).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The consumer's function.
    pub consumer: &'static str,
    /// Its queue.
    pub queue: &'static str,
    /// The message id.
    pub message_id: Option<&'a str>,
    /// Which run of the message it was.
    pub attempt: Attempt,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened to a delivery.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// The handler succeeded, and that is recorded.
    Processed {
        /// How long the handler ran.
        elapsed: Duration,
    },
    /// The precheck said that there is nothing to do; counts as success.
    Skipped,
    /// The message was processed, or dead-lettered, before.
    Duplicate,
    /// A later copy of the message exists.
    Stale,
    /// Not processed, as a duplicate, but the message that was processed under this identity had another body: the producer used an id
    /// twice.
    Conflict,
    /// Another worker has it, or it has to run alone and cannot now; it comes again.
    Busy {
        /// After how long.
        again_in: Duration,
    },
    /// The run failed and a retry is scheduled.
    Retried {
        /// After how long.
        delay: Duration,
        /// Whether it counts against `max`.
        counted: bool,
        /// Why.
        error: &'a ErrorText,
    },
    /// The message is a dead letter.
    DeadLettered {
        /// Why.
        reason: &'a Reason,
        /// The last error.
        error: &'a ErrorText,
    },
    /// The message runs without a claim, or its outcome is not recorded: the store is away and the consumer has `on_store_down = "run"`.
    /// What becomes of it is an event of its own.
    Unguarded {
        /// What the store said.
        error: &'a StoreError,
    },
    /// The delivery was handed back unprocessed: shutdown, lost connection or lost lease, store outage; or
    /// replaced by a copy that counts that it was delivered and not settled before.
    Returned,
}

/// The observers of a guard.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<Observer>>);

type Observer = dyn Fn(&Event<'_>) + Send + Sync;

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) {
        self.0.push(Arc::new(observer));
    }

    pub(crate) fn tell(&self, event: &Event<'_>) {
        self.0.iter().for_each(|observer| observer(event));
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}
