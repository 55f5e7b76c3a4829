use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::queue::Entry;
use crate::broker::headers::{HeaderValue, Headers};
use crate::broker::message::Message;

/// One line of a message's death history: what `x-death` shows.
#[derive(Clone)]
pub(super) struct Death {
    pub(super) queue: String,
    pub(super) reason: &'static str,
    count: i64,
    exchange: String,
    routing_key: String,
    time: u64,
    expiration: Option<String>,
}

/// The message as it arrives at the dead-letter target, and its history, newest first. Like RabbitMQ 4, the history counts only what the
/// broker did itself: a republished `x-death` header is not read.
pub(super) fn bury(mut entry: Entry, queue: &str, reason: &'static str, now: SystemTime) -> (Message, Vec<Death>) {
    let mut message = Arc::unwrap_or_clone(entry.message);
    let expiration = message.properties.expiration.take();
    let known = entry.deaths.iter().position(|death| death.queue == queue && death.reason == reason);
    let death = match known.map(|at| entry.deaths.remove(at)) {
        Some(death) => Death { count: death.count + 1, ..death },
        None => Death {
            queue: queue.to_owned(),
            reason,
            count: 1,
            exchange: entry.exchange,
            routing_key: entry.routing_key,
            time: now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            expiration,
        },
    };
    entry.deaths.insert(0, death);
    write_headers(&mut message.headers, &entry.deaths);
    (message, entry.deaths)
}

fn write_headers(headers: &mut Headers, deaths: &[Death]) {
    headers.insert("x-death", deaths.iter().map(table).collect::<Vec<_>>());
    for (which, death) in [("first", deaths.last()), ("last", deaths.first())] {
        let Some(death) = death else { continue };
        headers.insert(format!("x-{which}-death-queue"), death.queue.as_str());
        headers.insert(format!("x-{which}-death-reason"), death.reason);
        headers.insert(format!("x-{which}-death-exchange"), death.exchange.as_str());
    }
}

fn table(death: &Death) -> HeaderValue {
    let mut table = Headers::new();
    table.insert("count", death.count);
    table.insert("exchange", death.exchange.as_str());
    table.insert("queue", death.queue.as_str());
    table.insert("reason", death.reason);
    table.insert("routing-keys", vec![HeaderValue::from(death.routing_key.as_str())]);
    table.insert("time", HeaderValue::Timestamp(death.time));
    if let Some(expiration) = &death.expiration {
        table.insert("original-expiration", expiration.as_str());
    }
    table.into()
}

/// Whether sending a message with this history to `target` would be a cycle that no consumer had a part in; RabbitMQ drops those.
pub(super) fn is_cycle(deaths: &[Death], target: &str) -> bool {
    match deaths.iter().position(|death| death.queue == target) {
        Some(at) => deaths[..=at].iter().all(|death| death.reason != "rejected"),
        None => false,
    }
}
