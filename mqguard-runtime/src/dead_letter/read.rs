use std::time::SystemTime;

use bytes::Bytes;

use super::broker::BrokerDeath;
use super::reason::Reason;
use crate::broker::{HeaderValue, Message};
use crate::consumer::{DecodeError, ErrorText, Payload};
use crate::retry::{FailedAttempt, failures};
use crate::wire;

/// A dead letter: the message as it came, and why it died.
///
/// Letters that the broker made by itself (a full queue, a delivery limit) are read too; they tell less.
#[derive(Debug, Clone)]
pub struct DeadLetter<T> {
    message: Message,
    payload: Result<T, DecodeError>,
}

impl<T: Payload> Payload for DeadLetter<T> {
    /// Every message can be read as a letter; whether its body is a `T` is asked with [`DeadLetter::payload`].
    fn decode(message: &Message) -> Result<Self, DecodeError> {
        Ok(Self { payload: T::decode(message), message: message.clone() })
    }
}

impl<T> DeadLetter<T> {
    /// The message: body, properties and all headers.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The body, byte for byte.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.message.body
    }

    /// The body decoded.
    ///
    /// # Errors
    /// When the body is not a `T`, as in a letter with the reason [`Reason::Undecodable`].
    pub fn payload(&self) -> Result<&T, &DecodeError> {
        self.payload.as_ref()
    }

    /// The message id.
    #[must_use]
    pub fn message_id(&self) -> Option<&str> {
        self.message.properties.message_id.as_deref()
    }

    /// Why it died.
    #[must_use]
    pub fn reason(&self) -> Reason {
        let by_broker = || self.by_broker().reason.map(|reason| Reason::Broker(reason.to_owned()));
        self.text(wire::REASON).map(Reason::from_name).or_else(by_broker).unwrap_or_else(Reason::unknown)
    }

    /// The last error; `None` in a letter that the broker made.
    #[must_use]
    pub fn error(&self) -> Option<ErrorText> {
        let chain = self.message.headers.get(wire::ERROR_CHAIN).and_then(HeaderValue::as_array).unwrap_or_default();
        Some(ErrorText {
            kind: self.text(wire::ERROR_KIND)?.to_owned(),
            message: self.text(wire::ERROR)?.to_owned(),
            chain: chain.iter().filter_map(HeaderValue::as_str).map(str::to_owned).collect(),
        })
    }

    /// The failed attempts that are still known, oldest first.
    #[must_use]
    pub fn attempts(&self) -> Vec<FailedAttempt> {
        failures(&self.message.headers)
    }

    /// How often the handler ran for it.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.number(wire::RUNS)
    }

    /// How often it was replayed before.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.number(wire::GENERATION)
    }

    /// When it first failed.
    #[must_use]
    pub fn first_failure(&self) -> Option<SystemTime> {
        self.time(wire::FIRST_FAILURE)
    }

    /// When it died.
    #[must_use]
    pub fn died(&self) -> Option<SystemTime> {
        self.time(wire::DIED)
    }

    /// The function that gave up, with its module.
    #[must_use]
    pub fn consumer(&self) -> Option<&str> {
        self.text(wire::CONSUMER)
    }

    /// The queue that it died in.
    #[must_use]
    pub fn queue(&self) -> Option<&str> {
        self.text(wire::QUEUE).or_else(|| self.by_broker().queue)
    }

    /// The exchange that it was first published to; empty for the default exchange.
    #[must_use]
    pub fn exchange(&self) -> Option<&str> {
        self.text(wire::EXCHANGE).or_else(|| self.by_broker().exchange)
    }

    /// The routing key that it was first published with.
    #[must_use]
    pub fn routing_key(&self) -> Option<&str> {
        self.text(wire::ROUTING_KEY).or_else(|| self.by_broker().routing_key)
    }

    /// The host of the consumer that gave up.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.text(wire::HOST)
    }

    /// The headers that were shortened or dropped to fit the letter into a frame.
    #[must_use]
    pub fn cut(&self) -> Vec<&str> {
        let names = self.message.headers.get(wire::CUT).and_then(HeaderValue::as_array).unwrap_or_default();
        names.iter().filter_map(HeaderValue::as_str).collect()
    }

    /// What the broker says of a letter that it made. In one that has a reason of ours it tells only how the letter was kept.
    fn by_broker(&self) -> BrokerDeath<'_> {
        if self.text(wire::REASON).is_some() { BrokerDeath::default() } else { BrokerDeath::read(&self.message.headers) }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.message.headers.text(name)
    }

    fn number(&self, name: &str) -> u32 {
        let value = self.message.headers.get(name).and_then(HeaderValue::as_i64).unwrap_or(0);
        u32::try_from(value.max(0)).unwrap_or(u32::MAX)
    }

    fn time(&self, name: &str) -> Option<SystemTime> {
        humantime::parse_rfc3339(self.text(name)?).ok()
    }
}
