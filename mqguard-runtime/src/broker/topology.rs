use std::time::Duration;

/// The type of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueType {
    /// Replicated over a cluster, safe by default; RabbitMQ 3.8 and later.
    Quorum,
    /// On one node.
    Classic,
}

/// The kind of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExchangeKind {
    /// Routes by the whole key.
    Direct,
    /// Routes by patterns of the key.
    Topic,
    /// Routes to every queue.
    Fanout,
}

/// Exchanges, queues and bindings that have to be there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    /// The exchanges; all durable.
    pub exchanges: Vec<Exchange>,
    /// The queues; all durable.
    pub queues: Vec<Queue>,
    /// The bindings, made last.
    pub bindings: Vec<Binding>,
}

/// An exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: ExchangeKind,
}

/// A queue and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its type.
    pub queue_type: QueueType,
    /// How long a message stays before it is dead-lettered (`x-message-ttl`).
    pub message_ttl: Option<Duration>,
    /// How long the queue stays when nobody uses it (`x-expires`).
    pub expires: Option<Duration>,
    /// Where the broker sends what expires or is rejected (`x-dead-letter-exchange`, `x-dead-letter-routing-key`). On quorum queues this
    /// brings the at-least-once strategy and `reject-publish`, without which the broker may drop what it cannot deliver.
    pub dead_letters: Option<DeadLetterTarget>,
    /// After how many failed deliveries the broker itself dead-letters a message (`x-delivery-limit`; quorum queues only).
    pub delivery_limit: Option<u32>,
}

/// Where the broker sends what expires or is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterTarget {
    /// The exchange; empty for the default exchange.
    pub exchange: String,
    /// The routing key.
    pub routing_key: String,
}

/// A binding of a queue to an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The queue.
    pub queue: String,
    /// The exchange.
    pub exchange: String,
    /// The key.
    pub routing_key: String,
}

impl Queue {
    /// A durable queue without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>, queue_type: QueueType) -> Self {
        Self { name: name.into(), queue_type, message_ttl: None, expires: None, dead_letters: None, delivery_limit: None }
    }
}

/// What is done with the topology at start and after each reconnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeclareMode {
    /// Declare everything; what is there with other arguments is an error.
    #[default]
    Declare,
    /// Check that every exchange and queue is there, whatever its arguments. Hold queues for delays that the policy does not name are
    /// still declared when needed.
    Verify,
    /// Assume that everything is there.
    Skip,
}
