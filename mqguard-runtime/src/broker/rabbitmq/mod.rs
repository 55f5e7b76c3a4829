//! RabbitMQ, by AMQP 0-9-1. Types of the client library do not leave this module.

mod acker;
mod connection;
mod convert;
mod declare;
mod dial;
mod errors;
mod ledger;
mod publisher;
mod shallow;
mod stream;
mod subscription;
mod tune;
mod url;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::timeout;

use self::connection::{OPERATION_TIMEOUT, Role, Slot, no_answer};
use self::publisher::Publisher;
use self::subscription::RabbitMqSubscription;
use self::url::Nodes;
pub use self::url::RabbitMqUrlError;
use super::contract::{Address, Broker, BrokerError, ConsumeRequest, PublishError, Subscription};
use super::message::Message;
use super::topology::{DeclareMode, Topology};

/// RabbitMQ 3.10 and later. Clones share their connections.
///
/// There are two connections, one that consumes and one that publishes, so that a broker which is short of memory or disk and holds up
/// publishers does not hold up acknowledgements. Each is opened when it is first needed. One that was lost is opened anew when it is
/// next needed; how long to wait between attempts is the caller's business.
///
/// Nothing here waits for ever: the broker has 10 s for each answer (10 s for each node to connect, as long as the URL says nothing else)
/// and 30 s to confirm a publish.
#[derive(Clone)]
pub struct RabbitMq {
    shared: Arc<Shared>,
}

struct Shared {
    nodes: Arc<Nodes>,
    consuming: Slot,
    publisher: Publisher,
}

/// What the fuzz targets reach.
#[cfg(fuzzing)]
pub(crate) mod fuzzing {
    use lapin::BasicProperties;

    use super::convert::{to_message, to_properties};
    use crate::broker::Message;

    /// A message as it is received.
    #[must_use]
    pub fn message(properties: &BasicProperties, body: Vec<u8>) -> Message {
        to_message(properties, body)
    }

    /// What the client library reads of a frame.
    pub fn received(frame: &mut [u8]) {
        super::shallow::Frames::default().pass(frame);
    }

    /// What can be published comes back the same.
    pub fn publish(message: &Message) {
        if let Ok(properties) = to_properties(message) {
            assert_eq!(to_message(&properties, Vec::new()).headers, message.headers);
        }
    }
}

impl RabbitMq {
    /// The broker at `url`: `amqp://user:password@host:5672/virtual-host`, with several nodes of a cluster as
    /// `amqp://user:password@host1:5672,host2:5672/virtual-host`; `amqps://` for TLS. Does not connect yet.
    ///
    /// Without a user it is `guest`, without a virtual host it is `/`. Known parameters are `heartbeat` (in seconds, 5 by default: a
    /// connection that is silent for twice as long is lost), `connection_timeout` (in milliseconds for each node, 10 000 by default),
    /// `frame_max` (in bytes) and `channel_max`.
    ///
    /// # Errors
    /// When the URL cannot be used. The error does not show it.
    pub fn new(url: &str) -> Result<Self, RabbitMqUrlError> {
        let nodes: Arc<Nodes> = Arc::new(url.parse()?);
        let consuming = Slot::new(Arc::clone(&nodes), Role::Consume);
        let publisher = Publisher::new(Slot::new(Arc::clone(&nodes), Role::Publish));
        Ok(Self { shared: Arc::new(Shared { nodes, consuming, publisher }) })
    }

    /// Removes a queue with what is in it. A queue that is not there is no error.
    ///
    /// # Errors
    /// As [`Broker::declare`].
    pub async fn delete_queue(&self, queue: &str) -> Result<(), BrokerError> {
        declare::delete_queue(&self.shared.consuming, queue).await
    }

    /// Removes an exchange. One that is not there is no error.
    ///
    /// # Errors
    /// As [`Broker::declare`].
    pub async fn delete_exchange(&self, exchange: &str) -> Result<(), BrokerError> {
        declare::delete_exchange(&self.shared.consuming, exchange).await
    }
}

impl fmt::Debug for RabbitMq {
    /// The URL with the password masked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RabbitMq({})", self.shared.nodes)
    }
}

#[async_trait]
impl Broker for RabbitMq {
    async fn declare(&self, topology: &Topology, mode: DeclareMode) -> Result<(), BrokerError> {
        if mode == DeclareMode::Skip {
            return Ok(());
        }
        declare::declare(&self.shared.consuming, topology, mode).await
    }

    async fn consume(&self, request: ConsumeRequest) -> Result<Box<dyn Subscription>, BrokerError> {
        Ok(Box::new(RabbitMqSubscription::start(&self.shared.consuming, &request).await?))
    }

    async fn publish(&self, address: &Address, message: &Message) -> Result<(), PublishError> {
        self.shared.publisher.publish(address, message).await
    }

    async fn is_empty(&self, queue: &str) -> Result<bool, BrokerError> {
        declare::is_empty(&self.shared.consuming, queue).await
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        // A connection may be dead without anybody having noticed yet: only an answer counts.
        let (link, channel) = self.shared.consuming.channel().await?;
        match timeout(OPERATION_TIMEOUT, channel.close(200, "OK".into())).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(BrokerError::Unavailable(link.state().reason(&error))),
            Err(_) => Err(no_answer("a ping")),
        }
    }

    async fn close(&self) {
        tokio::join!(self.shared.consuming.close(), self.shared.publisher.slot().close());
    }

    /// What was negotiated, or RabbitMQ's default before there was a connection. A publish needs 2 KiB less, for the broker adds headers.
    fn frame_max(&self) -> usize {
        let publishing = self.shared.publisher.slot();
        if publishing.is_known() { publishing.frame_max() } else { self.shared.consuming.frame_max() }
    }
}
