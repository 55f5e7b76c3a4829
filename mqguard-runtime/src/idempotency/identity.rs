use std::fmt;

use md5::{Digest, Md5};

/// What makes two deliveries the same message to one consumer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The consumer: its queue.
    pub consumer: String,
    /// The business key; empty when there is none.
    pub business_key: String,
    /// The message id; empty when there is none, or when it is not part of the identity.
    pub message_id: String,
}

impl Identity {
    /// The MD5 of the three parts, each preceded by its length: joined without, `"1" + "23"` would equal `"12" + "3"`.
    #[must_use]
    pub fn digest(&self) -> [u8; 16] {
        let mut md5 = Md5::new();
        for part in [&self.consumer, &self.business_key, &self.message_id] {
            md5.update((part.len() as u64).to_be_bytes());
            md5.update(part.as_bytes());
        }
        md5.finalize().into()
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { consumer, business_key, message_id } = self;
        match (business_key.is_empty(), message_id.is_empty()) {
            (true, _) => write!(f, "{consumer}/{message_id}"),
            (_, true) => write!(f, "{consumer}/{business_key}"),
            _ => write!(f, "{consumer}/{business_key}/{message_id}"),
        }
    }
}
