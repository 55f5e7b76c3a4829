use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;

use super::message::Message;
use super::topology::{DeclareMode, Topology};

/// What carries messages. One conformance suite holds every implementation to the same behaviour.
#[async_trait]
pub trait Broker: fmt::Debug + Send + Sync + 'static {
    /// Makes sure that a topology is there. Declaring what is there already, with the same arguments, changes nothing.
    ///
    /// # Errors
    /// [`BrokerError::Mismatch`] and [`BrokerError::Missing`] need a person; [`BrokerError::Unavailable`] passes.
    async fn declare(&self, topology: &Topology, mode: DeclareMode) -> Result<(), BrokerError>;

    /// Begins to consume a queue.
    ///
    /// # Errors
    /// As [`declare`](Self::declare).
    async fn consume(&self, request: ConsumeRequest) -> Result<Box<dyn Subscription>, BrokerError>;

    /// Publishes a message; returns once the broker has taken responsibility for it and at least one queue has it.
    ///
    /// # Errors
    /// See [`PublishError`]: only [`PublishError::Unknown`] leaves open whether the message was taken.
    async fn publish(&self, address: &Address, message: &Message) -> Result<(), PublishError>;

    /// Whether no message is ready in a queue; what is delivered and unsettled is not. A broker that cannot say without delivering one says
    /// no, as by default.
    ///
    /// # Errors
    /// As [`declare`](Self::declare).
    async fn is_empty(&self, _queue: &str) -> Result<bool, BrokerError> {
        Ok(false)
    }

    /// Whether the broker can be reached now; tries to reach it when it was not.
    ///
    /// # Errors
    /// Why not.
    async fn ping(&self) -> Result<(), BrokerError>;

    /// Closes all connections. Call it after the subscriptions are closed.
    async fn close(&self);

    /// The largest frame in bytes: the headers of a message have to fit in one. 0 means no limit.
    fn frame_max(&self) -> usize;

    /// The time by the clock that delays run on. Virtual for the embedded broker under a paused tokio clock.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Whether everything is in this process and ends with it.
    fn is_embedded(&self) -> bool {
        false
    }
}

/// What to consume, and how much of it at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumeRequest {
    /// The queue.
    pub queue: String,
    /// The consumer's name as the broker shows it to operators. Made unique by the broker implementation.
    pub tag: String,
    /// Deliveries that may be out and unsettled at once.
    pub prefetch: u16,
}

/// A running subscription to a queue.
#[async_trait]
pub trait Subscription: Send {
    /// The next delivery. Cancel-safe: a dropped call loses no delivery.
    ///
    /// # Errors
    /// The subscription has ended; its unsettled deliveries are handed back by the broker, and settling them has no effect any more.
    async fn next(&mut self) -> Result<Delivery, BrokerError>;

    /// Waits until the subscription has ended, and says why; takes no delivery from [`next`](Self::next). By default it never does, and
    /// only `next` tells. Cancel-safe.
    async fn ended(&mut self) -> BrokerError {
        std::future::pending().await
    }

    /// Ends the intake: nothing new comes. Gives what was received and not yet taken by [`next`](Self::next), for the caller to settle.
    /// Deliveries that are out can still be settled.
    ///
    /// # Errors
    /// When the connection is gone; then everything is handed back anyway.
    async fn cancel(&mut self) -> Result<Vec<Delivery>, BrokerError>;

    /// Waits until the broker has all settlements made so far, then ends the subscription. What is unsettled is handed back.
    ///
    /// # Errors
    /// When the connection is gone: settlements that were under way may be lost.
    async fn close(self: Box<Self>) -> Result<(), BrokerError>;
}

/// Where a message is published to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The exchange; empty for the default exchange, which routes by queue name.
    pub exchange: String,
    /// The routing key.
    pub routing_key: String,
}

impl Address {
    /// Straight to a queue.
    #[must_use]
    pub fn queue(name: impl Into<String>) -> Self {
        Self { exchange: String::new(), routing_key: name.into() }
    }

    /// By an exchange.
    #[must_use]
    pub fn exchange(name: impl Into<String>, routing_key: impl Into<String>) -> Self {
        Self { exchange: name.into(), routing_key: routing_key.into() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.exchange.is_empty() {
            write!(f, "queue `{}`", self.routing_key)
        } else {
            write!(f, "exchange `{}` with routing key `{}`", self.exchange, self.routing_key)
        }
    }
}

/// A message on loan from a queue until it is settled.
#[derive(Debug)]
pub struct Delivery {
    /// The message.
    pub message: Arc<Message>,
    /// The exchange that it was published to; empty for the default exchange.
    pub exchange: String,
    /// The routing key that it was published with.
    pub routing_key: String,
    /// Whether this copy was delivered before.
    pub redelivered: bool,
    /// Settles it.
    pub receipt: Receipt,
}

/// How a delivery ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// Done with: the broker forgets the message.
    Ack,
    /// Handed back because it failed: counts towards the broker's delivery limit (`basic.reject` with requeue).
    Reject,
    /// Handed back untouched, as at shutdown: does not count on RabbitMQ 4.3 and later (`basic.nack` with requeue).
    Return,
}

/// Takes the settlements of one subscription.
#[async_trait]
pub trait Settle: Send + Sync {
    /// Settles the delivery with this tag. Never waits: acks have no answer. A settlement on a dead channel has no effect and is logged.
    fn settle(&self, tag: u64, settlement: Settlement);

    /// Whether a settlement made now can still have an effect.
    fn is_open(&self) -> bool;

    /// Waits until settlements have no effect any more, because the channel is gone.
    async fn closed(&self);
}

/// The right to settle one delivery, once. Dropped unused, it hands the delivery back ([`Settlement::Return`]).
pub struct Receipt {
    tag: u64,
    channel: Option<Arc<dyn Settle>>,
}

impl Receipt {
    /// The receipt for `tag` on `channel`.
    #[must_use]
    pub fn new(tag: u64, channel: Arc<dyn Settle>) -> Self {
        Self { tag, channel: Some(channel) }
    }

    /// Settles the delivery.
    pub fn settle(mut self, settlement: Settlement) {
        if let Some(channel) = self.channel.take() {
            channel.settle(self.tag, settlement);
        }
    }

    /// What settles the delivery, for whoever puts something of its own before it. This receipt settles nothing any more.
    #[cfg(feature = "testing")]
    pub(crate) fn into_parts(mut self) -> Option<(u64, Arc<dyn Settle>)> {
        self.channel.take().map(|channel| (self.tag, channel))
    }

    /// Whether settling can still have an effect.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.is_open())
    }

    /// Waits until settling has no effect any more.
    pub async fn closed(&self) {
        if let Some(channel) = &self.channel {
            channel.closed().await;
        }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if let Some(channel) = self.channel.take() {
            channel.settle(self.tag, Settlement::Return);
        }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receipt({})", self.tag)
    }
}

/// Why the broker could not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The broker cannot be reached, or the connection or channel was lost. Passes by itself; worth trying again.
    #[error("the broker is not available: {0}")]
    Unavailable(String),
    /// The broker refused the user or password, or the virtual host.
    #[error("the broker refused access: {0}")]
    Refused(String),
    /// A queue or exchange is there with other settings than declared.
    #[error("{0}")]
    Mismatch(Mismatch),
    /// A queue or exchange is not there.
    #[error("{what} `{name}` does not exist: declare it, or let mqguard do so (`DeclareMode::Declare`)")]
    Missing {
        /// `queue` or `exchange`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The broker does not do this at all, for a reason that trying again does not change.
    #[error("the broker refused: {0}")]
    Unsupported(String),
}

impl BrokerError {
    /// Whether it passes by itself.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// A queue or exchange that is there with other settings than declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// `queue` or `exchange`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// The argument or property that differs, such as `x-message-ttl`.
    pub argument: String,
    /// The declared value, as the broker tells it.
    pub declared: String,
    /// The value that it has.
    pub actual: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name, argument, declared, actual } = self;
        let (actual, declared) = (shown(actual), shown(declared));
        write!(
            f,
            "{what} `{name}` is there with other settings: `{argument}` is {actual}, declared is {declared}. \
             Delete it once it is empty and let it be declared anew, or give it another name"
        )?;
        // A hold queue that does not lead back would lose what waits in it.
        if argument.starts_with("x-dead-letter") || argument == "x-message-ttl" {
            return Ok(());
        }
        f.write_str("; or leave it as it is with `DeclareMode::Verify`")
    }
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "\"\"" } else { value }
}

/// Why a publish did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// No queue takes the message, or the exchange does not exist. It was not stored.
    #[error("no queue takes a message for {0}")]
    Unroutable(Address),
    /// The broker refused the message, as a queue that is full does. It was not stored.
    #[error("the broker refused the message for {address}: {reason}")]
    Refused {
        /// Where it should have gone.
        address: Address,
        /// What the broker said.
        reason: String,
    },
    /// The connection was lost, or the answer did not come in time: whether the message was stored is not known.
    #[error("whether the message for {address} was stored is not known: {reason}")]
    Unknown {
        /// Where it should have gone.
        address: Address,
        /// What happened.
        reason: String,
    },
    /// The broker cannot be reached: the message was not sent.
    #[error("the message for {address} was not sent: {reason}")]
    Unavailable {
        /// Where it should have gone.
        address: Address,
        /// What happened.
        reason: String,
    },
}
