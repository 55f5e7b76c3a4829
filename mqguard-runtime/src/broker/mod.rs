//! What carries messages: the embedded broker and RabbitMQ, behind one trait.

mod contract;
mod headers;
mod memory;
mod message;
#[cfg(feature = "rabbitmq")]
pub(crate) mod rabbitmq;
mod topology;

pub use contract::{
    Address, Broker, BrokerError, ConsumeRequest, Delivery, Mismatch, PublishError, Receipt, Settle, Settlement, Subscription,
};
pub use headers::{HeaderValue, Headers};
pub use memory::MemoryBroker;
pub(crate) use message::JSON;
pub use message::{Message, Properties};
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::{RabbitMq, RabbitMqUrlError};
pub use topology::{Binding, DeadLetterTarget, DeclareMode, Exchange, ExchangeKind, Queue, QueueType, Topology};
