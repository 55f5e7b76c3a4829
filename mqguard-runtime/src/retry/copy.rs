//! The copy of a message that waits for its next run.

use super::progress::Progress;
use crate::broker::{Delivery, Headers, Message};
use crate::wire;

/// The message as it is published again: same body, properties and headers, without what belongs to the delivery that it is copied from.
pub(crate) fn copy(delivery: &Delivery, progress: &Progress) -> Message {
    let mut message = detached(delivery);
    end_letter(&mut message.headers);
    progress.write(&mut message.headers);
    message
}

/// Drops what a letter told of the life that ended with it.
pub(crate) fn end_letter(headers: &mut Headers) {
    if headers.get(wire::DIED).is_some() {
        headers.retain(|name, _| !wire::OF_LETTERS.contains(&name));
    }
}

/// The message without the marks of its delivery, but with a note of where it first came from.
pub(crate) fn detached(delivery: &Delivery) -> Message {
    let mut message = Message::clone(&delivery.message);
    let headers = &mut message.headers;
    if headers.get(wire::ROUTING_KEY).is_none() {
        headers.insert(wire::EXCHANGE, delivery.exchange.as_str());
        headers.insert(wire::ROUTING_KEY, delivery.routing_key.as_str());
    }
    // An `expiration` would let the copy vanish where it waits; a `user_id` is refused from another user's connection.
    if let Some(expiration) = message.properties.expiration.take() {
        headers.insert(wire::EXPIRATION, expiration);
    }
    if let Some(user) = message.properties.user_id.take() {
        headers.insert(wire::USER_ID, user);
    }
    // The broker would route the copy to every queue that `CC` names, once more.
    if let Some(cc) = headers.remove("CC") {
        headers.insert(wire::CC, cc);
    }
    headers.remove("BCC");
    strip_broker_headers(headers);
    message.properties.delivery_mode = Some(2);
    message
}

/// Drops what the broker wrote about earlier hops: a copy begins a new history.
fn strip_broker_headers(headers: &mut Headers) {
    headers.retain(|name, _| {
        let owned = ["x-death", "x-delivery-count", "x-acquired-count"].contains(&name);
        !owned && !name.starts_with("x-first-death-") && !name.starts_with("x-last-death-") && !name.starts_with("x-opt-")
    });
}
