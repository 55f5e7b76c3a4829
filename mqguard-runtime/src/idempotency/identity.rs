use std::borrow::Cow;
use std::fmt;

use md5::{Digest, Md5};

/// What makes two deliveries the same message to one consumer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    consumer: Cow<'static, str>,
    business_key: String,
    message_id: String,
    digest: [u8; 16],
}

impl Identity {
    /// Of the consumer (its queue), the business key (empty when there is none), and the message id (empty when there is none, or when
    /// it is not part of the identity).
    #[must_use]
    pub fn new(consumer: impl Into<Cow<'static, str>>, business_key: impl Into<String>, message_id: impl Into<String>) -> Self {
        let (consumer, business_key, message_id) = (consumer.into(), business_key.into(), message_id.into());
        let mut md5 = Md5::new();
        for part in [&*consumer, &business_key, &message_id] {
            md5.update((part.len() as u64).to_be_bytes());
            md5.update(part.as_bytes());
        }
        Self { consumer, business_key, message_id, digest: md5.finalize().into() }
    }

    /// The consumer: its queue.
    #[must_use]
    pub fn consumer(&self) -> &str {
        &self.consumer
    }

    /// The business key; empty when there is none.
    #[must_use]
    pub fn business_key(&self) -> &str {
        &self.business_key
    }

    /// The message id; empty when there is none, or when it is not part of the identity.
    #[must_use]
    pub fn message_id(&self) -> &str {
        &self.message_id
    }

    /// The MD5 of the three parts, each preceded by its length: joined without, `"1" + "23"` would equal `"12" + "3"`.
    #[must_use]
    pub fn digest(&self) -> [u8; 16] {
        self.digest
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { consumer, business_key, message_id, .. } = self;
        match (business_key.is_empty(), message_id.is_empty()) {
            (true, _) => write!(f, "{consumer}/{message_id}"),
            (_, true) => write!(f, "{consumer}/{business_key}"),
            _ => write!(f, "{consumer}/{business_key}/{message_id}"),
        }
    }
}
