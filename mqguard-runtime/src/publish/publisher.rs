use std::fmt;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use serde::Serialize;

use crate::broker::{Address, Broker, HeaderValue, JSON, Message, PublishError};

/// Publishes messages. A publish that returns `Ok` is stored by the broker in at least one queue. Clones share the connection.
#[derive(Debug, Clone)]
pub struct Publisher {
    broker: Arc<dyn Broker>,
}

/// A body that cannot be written as JSON.
#[derive(Debug, thiserror::Error)]
#[error("the payload cannot be written as JSON: {0}")]
pub struct EncodeError(#[from] serde_json::Error);

impl Publisher {
    pub(crate) fn new(broker: Arc<dyn Broker>) -> Self {
        Self { broker }
    }

    /// A message with this payload as JSON.
    ///
    /// # Errors
    /// When the payload cannot be written as JSON.
    pub fn json(&self, payload: &impl Serialize) -> Result<Draft, EncodeError> {
        let mut draft = self.bytes(serde_json::to_vec(payload)?);
        draft.message.properties.content_type = Some(JSON.to_owned());
        Ok(draft)
    }

    /// A message with this body.
    pub fn bytes(&self, body: impl Into<Bytes>) -> Draft {
        let mut message = Message { body: body.into(), ..Message::default() };
        message.properties.message_id = Some(uuid::Uuid::now_v7().to_string());
        message.properties.timestamp = self.broker.now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs());
        message.properties.delivery_mode = Some(2);
        Draft { broker: Arc::clone(&self.broker), message }
    }
}

/// A message about to be published: persistent, with a new message id (UUIDv7) and the time.
#[must_use = "a draft is not sent until `to_queue` or `to_exchange` is awaited"]
pub struct Draft {
    broker: Arc<dyn Broker>,
    message: Message,
}

impl Draft {
    /// Gives the message an id of its own; publishing the same thing twice under one id makes the second a duplicate.
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        self.message.properties.message_id = Some(id.into());
        self
    }

    /// Sets the correlation id.
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.message.properties.correlation_id = Some(id.into());
        self
    }

    /// Sets the priority.
    pub fn priority(mut self, priority: u8) -> Self {
        self.message.properties.priority = Some(priority);
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<HeaderValue>) -> Self {
        self.message.headers.insert(name, value);
        self
    }

    /// Changes anything else about the message.
    pub fn with(mut self, change: impl FnOnce(&mut Message)) -> Self {
        change(&mut self.message);
        self
    }

    /// Publishes straight to a queue; returns the message id.
    ///
    /// # Errors
    /// See [`PublishError`]; after [`PublishError::Unknown`] the message may be there: publish it again under the same id.
    pub async fn to_queue(self, queue: &str) -> Result<String, PublishError> {
        self.publish(Address::queue(queue)).await
    }

    /// Publishes to an exchange; returns the message id.
    ///
    /// # Errors
    /// See [`PublishError`]; after [`PublishError::Unknown`] the message may be there: publish it again under the same id.
    pub async fn to_exchange(self, exchange: &str, routing_key: &str) -> Result<String, PublishError> {
        self.publish(Address::exchange(exchange, routing_key)).await
    }

    async fn publish(self, address: Address) -> Result<String, PublishError> {
        self.broker.publish(&address, &self.message).await?;
        Ok(self.message.properties.message_id.unwrap_or_default())
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Draft").field(&self.message).finish()
    }
}
