use std::fmt;

use bytes::Bytes;

use super::headers::Headers;

/// A message: body, properties and headers.
#[derive(Clone, Default, PartialEq)]
pub struct Message {
    /// The body as it travels.
    pub body: Bytes,
    /// The standard properties.
    pub properties: Properties,
    /// The headers.
    pub headers: Headers,
}

/// The standard properties of a message, other than its headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Properties {
    /// The publisher's id of the message.
    pub message_id: Option<String>,
    /// The id of what the message belongs to.
    pub correlation_id: Option<String>,
    /// The media type of the body.
    pub content_type: Option<String>,
    /// The encoding of the body.
    pub content_encoding: Option<String>,
    /// The kind of message.
    pub kind: Option<String>,
    /// The publishing application.
    pub app_id: Option<String>,
    /// The publishing user; the broker checks it against the connection.
    pub user_id: Option<String>,
    /// Where an answer is expected.
    pub reply_to: Option<String>,
    /// When the message was made, in seconds since 1970 UTC.
    pub timestamp: Option<u64>,
    /// The priority.
    pub priority: Option<u8>,
    /// 2: survives a restart of the broker. 1: need not. What is published without is published with 2.
    pub delivery_mode: Option<u8>,
    /// The message's own time to live, in milliseconds, as text.
    pub expiration: Option<String>,
}

/// Type, channel, size and end marker of an AMQP frame; class, weight, body size and property flags of a content header.
const CONTENT_HEADER_FIXED: usize = (1 + 2 + 4 + 1) + (2 + 2 + 8 + 2);

impl Message {
    /// The size in bytes of the AMQP frame that carries properties and headers, the delivery mode always among them.
    pub(crate) fn content_header_len(&self) -> usize {
        let headers = if self.headers.is_empty() { 0 } else { self.headers.encoded_len() };
        CONTENT_HEADER_FIXED + self.properties.encoded_len() + headers
    }
}

impl Properties {
    fn encoded_len(&self) -> usize {
        let Self {
            message_id, correlation_id, content_type, content_encoding, kind, app_id, user_id, reply_to, expiration, ..
        } = self;
        let texts = [message_id, correlation_id, content_type, content_encoding, kind, app_id, user_id, reply_to, expiration];
        let texts: usize = texts.into_iter().flatten().map(|text| 1 + text.len()).sum();
        texts + self.timestamp.map_or(0, |_| 8) + self.priority.map_or(0, |_| 1) + 1
    }
}

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";

impl fmt::Debug for Message {
    /// Bodies may hold personal data: only their size is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("body", &format_args!("{} bytes", self.body.len()))
            .field("properties", &self.properties)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish()
    }
}
