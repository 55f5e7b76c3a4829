use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::broker::{MemoryBroker, Message};
use crate::consumer::{ConsumerSpec, Handler, Role};
use crate::idempotency::{self, Identity};

/// The consumers under test, by their queues.
pub(super) struct Known(Vec<(&'static ConsumerSpec, Arc<dyn Handler>)>);

/// A message as one consumer knows it: what counts as the same message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Name {
    /// By the consumer's store.
    Identity(Identity),
    /// To a consumer without a store, or when there is nothing to tell it by: queue and message id.
    Message(&'static str, String),
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Identity(identity) => write!(f, "{identity}"),
            Self::Message(queue, id) => write!(f, "{queue}/{id}"),
        }
    }
}

impl Known {
    pub(super) fn new(consumers: Vec<(&'static ConsumerSpec, Arc<dyn Handler>)>) -> Self {
        Self(consumers)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn specs(&self) -> impl Iterator<Item = &'static ConsumerSpec> {
        self.0.iter().map(|(spec, _)| *spec)
    }

    /// Those that consume messages, not letters.
    pub(super) fn business(&self) -> impl Iterator<Item = &'static ConsumerSpec> {
        self.specs().filter(|spec| spec.role == Role::Business)
    }

    pub(super) fn of_queue(&self, queue: &str) -> Option<&'static ConsumerSpec> {
        self.specs().find(|spec| spec.queue == queue)
    }

    /// The queue of the consumer that takes from this one, which may be that of what it runs alone.
    pub(super) fn home<'a>(&self, queue: &'a str) -> &'a str {
        self.specs().find(|spec| spec.quarantine().name == queue).map_or(queue, |spec| spec.queue)
    }

    /// What a message is to the consumer of a queue.
    pub(super) fn name(&self, queue: &str, message: &Message) -> Option<Name> {
        let (spec, handler) = self.0.iter().find(|(spec, _)| spec.queue == queue)?;
        let id = message.properties.message_id.as_deref();
        let prepared = catch_unwind(AssertUnwindSafe(|| handler.prepare(message)));
        let (is_read, key) = match prepared {
            Ok(Ok(prepared)) => (true, prepared.business_key),
            Ok(Err(_)) | Err(_) => (false, None),
        };
        let identity = spec
            .idempotent
            .filter(|idempotent| is_read || !idempotent.keyed)
            .and_then(|idempotent| idempotency::identity(&idempotent, spec.queue, key.as_deref(), id));
        Some(identity.map_or_else(|| Name::Message(spec.queue, id.unwrap_or_default().to_owned()), Name::Identity))
    }

    /// Whether nothing waits, in a queue or at a consumer, but dead letters that nobody consumes.
    pub(super) fn is_at_rest(&self, queues: &MemoryBroker) -> bool {
        let is_left =
            |queue: &str| self.of_queue(queue).is_none() && self.business().any(|spec| spec.dead_letter_place().queue == queue);
        queues.queues().iter().all(|queue| is_left(queue) || queues.depth(queue) + queues.unsettled(queue) == 0)
    }
}
