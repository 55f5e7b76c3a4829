use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::message::BasicReturnMessage;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation, ErrorKind};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use super::connection::{Link, OPERATION_TIMEOUT, Slot, discard, no_answer};
use super::convert::{short, to_properties};
use super::errors::{self, code};
use crate::broker::contract::{Address, PublishError};
use crate::broker::message::Message;

/// How long the broker may take to confirm, and how long a publish waits for its turn.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);

/// Publishes under way at once, each on a channel of its own: the client library cannot tell which of several publishes on one channel
/// a returned message belongs to.
const CHANNELS: usize = 64;

/// Room for what the broker adds to the headers, in bytes: a dead-letter hop with names of full length, or several with usual ones.
const BROKER_HEADERS: usize = 2048;

/// Publishes with confirms, on channels that are kept for the next publish.
pub(super) struct Publisher {
    slot: Slot,
    turns: Semaphore,
    /// Each with the connection that it is on.
    idle: Mutex<Vec<(Arc<Link>, Channel)>>,
}

/// A message as it is sent.
struct Envelope<'a> {
    address: &'a Address,
    exchange: ShortString,
    routing_key: ShortString,
    properties: BasicProperties,
    body: &'a [u8],
}

/// What became of one try.
enum Tried {
    Done(Result<(), PublishError>),
    /// Nothing was sent: the channel or connection was gone already.
    NotSent(String),
}

impl Publisher {
    pub(super) fn new(slot: Slot) -> Self {
        Self { slot, turns: Semaphore::new(CHANNELS), idle: Mutex::default() }
    }

    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(super) async fn publish(&self, address: &Address, message: &Message) -> Result<(), PublishError> {
        let refused = |reason| PublishError::Refused { address: address.clone(), reason };
        let unavailable = |reason| PublishError::Unavailable { address: address.clone(), reason };
        let properties = to_properties(message).map_err(refused)?;
        let exchange = short("the name of the exchange", &address.exchange).map_err(refused)?;
        let routing_key = short("the routing key", &address.routing_key).map_err(refused)?;
        let envelope = Envelope { address, exchange, routing_key, properties, body: &message.body };

        let deadline = Instant::now() + CONFIRM_TIMEOUT;
        let Ok(Ok(_turn)) = timeout_at(deadline, self.turns.acquire()).await else {
            return Err(unavailable(format!("{CHANNELS} publishes before it had no answer within {CONFIRM_TIMEOUT:?}")));
        };
        let mut reason = String::new();
        // The second try is for a connection that turns out to be lost; it brings one attempt to connect anew.
        for _ in 0..2 {
            let link = self.slot.link().await.map_err(|error| unavailable(error.to_string()))?;
            self.fits(message).map_err(refused)?;
            if let Some(why) = link.state().blocked()
                && timeout_at(deadline, link.state().unblocked()).await.is_err()
            {
                return Err(unavailable(format!("the broker blocks publishing: {why}")));
            }
            match self.attempt(&link, &envelope).await {
                Tried::Done(result) => return result,
                Tried::NotSent(why) => reason = why,
            }
        }
        Err(unavailable(reason))
    }

    /// Headers that do not fit into one frame are not refused by the broker: the connection breaks over them. So it does over those that
    /// fit no more once the broker has added its own, which it does to a message that it delivers again or dead-letters: then at each
    /// delivery.
    fn fits(&self, message: &Message) -> Result<(), String> {
        let (length, frame_max) = (message.content_header_len(), self.slot.frame_max());
        let limit = frame_max - BROKER_HEADERS.min(frame_max / 16);
        if frame_max > 0 && length > limit {
            return Err(format!(
                "its properties and headers take {length} bytes, there is room for {limit}: {frame_max} in a frame (`frame_max`), less \
                 what the broker adds"
            ));
        }
        Ok(())
    }

    async fn attempt(&self, link: &Arc<Link>, envelope: &Envelope<'_>) -> Tried {
        let address = envelope.address;
        let channel = match self.channel(link).await {
            Ok(channel) => channel,
            Err(reason) => return Tried::NotSent(reason),
        };
        let unknown = |reason: String| Tried::Done(Err(PublishError::Unknown { address: address.clone(), reason }));
        // Lets the channel go unless the publish comes to its end: its answer must not be taken for the next one's.
        let mut used = Used(Some(channel.clone()));
        let deadline = Instant::now() + CONFIRM_TIMEOUT;
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        let (exchange, key) = (envelope.exchange.clone(), envelope.routing_key.clone());
        let sent = channel.basic_publish(exchange, key, options, envelope.body, envelope.properties.clone());
        let sent = timeout_at(deadline, sent).await;
        let answer = match sent {
            Ok(Ok(confirm)) => timeout_at(deadline, confirm).await,
            Ok(Err(error)) if not_sent(&error) => return Tried::NotSent(link.state().reason(&error)),
            Ok(Err(error)) => Ok(Err(error)),
            Err(elapsed) => Err(elapsed),
        };
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                return match refusal(&error, address) {
                    Some(refusal) => Tried::Done(Err(refusal)),
                    None => unknown(link.state().reason(&error)),
                };
            }
            Err(_) => {
                let blocked =
                    link.state().blocked().map(|why| format!("; the broker blocks publishing: {why}")).unwrap_or_default();
                return unknown(format!("no confirm within {CONFIRM_TIMEOUT:?}{blocked}"));
            }
        };
        used.0 = None;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((Arc::clone(link), channel));
        Tried::Done(match answer {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(returned)) => Err(returned_error(&returned, address)),
            Confirmation::Nack(_) => {
                let reason = "the queue did not take it, as one that is full does".into();
                Err(PublishError::Refused { address: address.clone(), reason })
            }
            Confirmation::NotRequested => {
                Err(PublishError::Unknown { address: address.clone(), reason: "the channel does not confirm".into() })
            }
        })
    }

    /// An idle channel, or a new one.
    async fn channel(&self, link: &Arc<Link>) -> Result<Channel, String> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some((on, channel)) if Arc::ptr_eq(&on, link) && channel.status().connected() => return Ok(channel),
                Some((_, channel)) => discard(channel),
                None => break,
            }
        }
        let channel = link.channel().await.map_err(|error| error.to_string())?;
        match timeout(OPERATION_TIMEOUT, channel.confirm_select(ConfirmSelectOptions::default())).await {
            Ok(Ok(())) => Ok(channel),
            Ok(Err(error)) => Err(link.state().reason(&error)),
            Err(_) => {
                discard(channel);
                Err(no_answer("switching on confirms").to_string())
            }
        }
    }
}

/// What it means when the broker closed the channel over a publish. One publish is under way on it, so it was this one.
fn refusal(error: &lapin::Error, address: &Address) -> Option<PublishError> {
    match errors::reply(error)? {
        (code::NOT_FOUND, _) => Some(PublishError::Unroutable(address.clone())),
        (code::PRECONDITION_FAILED | code::ACCESS_REFUSED | code::CONTENT_TOO_LARGE, text) => {
            Some(PublishError::Refused { address: address.clone(), reason: text.to_owned() })
        }
        _ => None,
    }
}

/// Whether the client library found the channel closed before it took the message.
fn not_sent(error: &lapin::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidChannelState(_, "basic.publish"))
}

fn returned_error(returned: &BasicReturnMessage, address: &Address) -> PublishError {
    /// No queue is bound.
    const NO_ROUTE: u16 = 312;
    match returned.reply_code {
        NO_ROUTE => PublishError::Unroutable(address.clone()),
        code => PublishError::Refused { address: address.clone(), reason: format!("{code} {}", returned.reply_text) },
    }
}

struct Used(Option<Channel>);

impl Drop for Used {
    fn drop(&mut self) {
        if let Some(channel) = self.0.take() {
            discard(channel);
        }
    }
}
