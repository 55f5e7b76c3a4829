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
