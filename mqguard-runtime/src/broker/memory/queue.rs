use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::death::Death;
use crate::broker::message::Message;
use crate::broker::topology::{Queue, QueueType};

/// A queue and what is ready in it.
pub(super) struct QueueState {
    pub(super) declared: Queue,
    /// Sorted by `seq`: what is handed back returns to its place.
    pub(super) ready: VecDeque<Entry>,
    /// Expired or rejected, but nothing takes them: kept by at-least-once dead-lettering until something does.
    pub(super) stranded: Vec<(Entry, &'static str)>,
    pub(super) consumers: usize,
    last_used: Instant,
    next_seq: u64,
    /// Told when something may be ready.
    pub(super) wake: Arc<Notify>,
}

/// A message in a queue.
pub(super) struct Entry {
    pub(super) message: Arc<Message>,
    pub(super) exchange: String,
    pub(super) routing_key: String,
    pub(super) redelivered: bool,
    pub(super) failures: u32,
    pub(super) deaths: Vec<Death>,
    expires_at: Option<Instant>,
    seq: u64,
}

impl Entry {
    /// What a consumer sees of it.
    pub(super) fn view(&self) -> Self {
        Self {
            message: Arc::clone(&self.message),
            exchange: self.exchange.clone(),
            routing_key: self.routing_key.clone(),
            deaths: Vec::new(),
            ..*self
        }
    }
}

impl QueueState {
    pub(super) fn new(declared: Queue, now: Instant) -> Self {
        Self {
            declared,
            ready: VecDeque::new(),
            stranded: Vec::new(),
            consumers: 0,
            last_used: now,
            next_seq: 0,
            wake: Arc::new(Notify::new()),
        }
    }

    /// A new declaration of a classic queue counts as use; of a quorum queue it does not (rabbitmq-server issue 5894).
    pub(super) fn redeclared(&mut self, now: Instant) {
        if self.declared.queue_type == QueueType::Classic {
            self.last_used = now;
        }
    }

    pub(super) fn unsubscribed(&mut self, now: Instant) {
        self.consumers -= 1;
        self.last_used = now;
    }

    /// Appends a message.
    pub(super) fn push(&mut self, message: Message, exchange: &str, routing_key: &str, deaths: Vec<Death>, now: Instant) {
        let own = message.properties.expiration.as_deref().and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
        let ttl = match (own, self.declared.message_ttl) {
            (Some(own), Some(queue)) => Some(own.min(queue)),
            (own, queue) => own.or(queue),
        };
        self.ready.push_back(Entry {
            message: Arc::new(message),
            exchange: exchange.to_owned(),
            routing_key: routing_key.to_owned(),
            redelivered: false,
            failures: 0,
            deaths,
            expires_at: ttl.map(|ttl| now + ttl),
            seq: self.next_seq,
        });
        self.next_seq += 1;
        self.wake.notify_waiters();
    }

    /// Puts a delivered message back to its place.
    pub(super) fn put_back(&mut self, mut entry: Entry) {
        entry.redelivered = true;
        let place = self.ready.partition_point(|other| other.seq < entry.seq);
        self.ready.insert(place, entry);
        self.wake.notify_waiters();
    }

    /// Takes the head if it has expired. Only the head is looked at, as RabbitMQ does.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<Entry> {
        let expired = self.ready.front()?.expires_at.is_some_and(|at| at <= now);
        if expired { self.ready.pop_front() } else { None }
    }

    /// Whether the queue itself has expired.
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.expires_at().is_some_and(|at| at <= now)
    }

    fn expires_at(&self) -> Option<Instant> {
        (self.consumers == 0).then_some(self.last_used + self.declared.expires?)
    }

    /// When something expires next.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let head = self.ready.front().and_then(|entry| entry.expires_at);
        [head, self.expires_at()].into_iter().flatten().min()
    }
}
