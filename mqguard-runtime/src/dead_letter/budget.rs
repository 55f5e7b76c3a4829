//! Keeping the headers of a message within one frame: RabbitMQ and its clients close the connection over a longer one.

use crate::broker::{HeaderValue, Headers, Message};
use crate::retry::{LONGEST_KIND, cut_text};
use crate::wire;

/// The longest error text, and the longest text of one source and of one attempt, in bytes.
const LONGEST_ERROR: usize = 4096;
const LONGEST_SOURCE: usize = 1024;
/// The longest chain of sources.
const LONGEST_CHAIN: usize = 32;
/// What an error text is cut to when there is no room.
const SHORT_ERROR: usize = 256;
/// A thousand dropped headers must not make the list of them too long: that many names are listed, none longer than AMQP allows.
const LISTED: usize = 16;
const LONGEST_NAME: usize = 255;

/// What a letter always tells, none of it longer than this many bytes by then. One that is longer was not written by us.
const KEPT: [&str; 12] = [
    wire::GENERATION,
    wire::FIRST_FAILURE,
    wire::RUNS,
    wire::EXCHANGE,
    wire::ROUTING_KEY,
    wire::REASON,
    wire::ERROR_KIND,
    wire::ERROR,
    wire::DIED,
    wire::CONSUMER,
    wire::QUEUE,
    wire::HOST,
];
const LONGEST_KEPT: usize = 300;

/// By how many bytes a message is too long for a frame of `frame_max` (0 is no limit) with so many more in its headers. Leaves room for
/// what the broker adds when it dead-letters.
fn excess(message: &Message, more: usize, frame_max: usize) -> usize {
    if frame_max == 0 {
        return 0;
    }
    let for_the_broker = 4096.min(frame_max / 8);
    (message.content_header_len() + more + for_the_broker).saturating_sub(frame_max)
}

/// Whether a message's headers fit.
fn fits(message: &Message, frame_max: usize) -> bool {
    excess(message, 0, frame_max) == 0
}

/// Makes a retry copy fit, at the cost of its history. Returns whether it does now.
pub(crate) fn fit_copy(message: &mut Message, frame_max: usize) -> bool {
    if fits(message, frame_max) {
        return true;
    }
    let mut cut = Cut::take(&mut message.headers);
    cut.while_too_long(message, frame_max, Cut::oldest_attempt);
    cut.while_too_long(message, frame_max, Cut::last_attempt);
    cut.list(&mut message.headers);
    fits(message, frame_max)
}

/// Makes a letter fit, whatever it takes: first the oldest attempts go, then the innermost sources, then the last attempt and the rest
/// of the error, last the largest headers of the message itself. What was cut is listed in `mqguard-cut`.
pub(crate) fn fit_letter(message: &mut Message, frame_max: usize) {
    let mut cut = Cut::take(&mut message.headers);
    cut.limit_texts(&mut message.headers);
    for measure in [Cut::oldest_attempt, Cut::innermost_source, Cut::last_attempt, Cut::error] {
        cut.while_too_long(message, frame_max, measure);
    }
    cut.largest(message, frame_max);
    cut.list(&mut message.headers);
}

/// The names of the headers that were shortened or dropped.
struct Cut(Vec<String>);

impl Cut {
    /// Takes the list of what was cut from earlier copies out of the headers.
    fn take(headers: &mut Headers) -> Self {
        let names = headers.remove(wire::CUT);
        let names = names.as_ref().and_then(HeaderValue::as_array).unwrap_or_default();
        let mut cut = Self(Vec::new());
        names.iter().filter_map(HeaderValue::as_str).for_each(|name| cut.mark(name));
        cut
    }

    fn mark(&mut self, name: &str) {
        if self.0.len() < LISTED && name.len() <= LONGEST_NAME && !self.0.iter().any(|cut| cut == name) {
            self.0.push(name.to_owned());
        }
    }

    fn list(&self, headers: &mut Headers) {
        if !self.0.is_empty() {
            headers.insert(wire::CUT, self.0.iter().map(|name| HeaderValue::from(name.as_str())).collect::<Vec<_>>());
        }
    }

    /// By how many bytes a message is too long, when what was cut is listed.
    fn excess(&self, message: &Message, frame_max: usize) -> usize {
        let mut list = Headers::new();
        self.list(&mut list);
        excess(message, list.encoded_len(), frame_max)
    }

    /// Repeats a measure until it has been enough, or has nothing more to cut.
    fn while_too_long(&mut self, message: &mut Message, frame_max: usize, measure: fn(&mut Self, &mut Headers) -> bool) {
        while self.excess(message, frame_max) > 0 && measure(self, &mut message.headers) {}
    }

    fn limit_texts(&mut self, headers: &mut Headers) {
        shorten(headers, wire::ERROR_KIND, LONGEST_KIND);
        if shorten(headers, wire::ERROR, LONGEST_ERROR) {
            self.mark(wire::ERROR);
        }
        if first_attempt(headers).is_some_and(|attempt| attempt > 1) {
            // Earlier copies had no room for all.
            self.mark(wire::ATTEMPTS);
        }
        let Some(HeaderValue::Array(mut chain)) = headers.remove(wire::ERROR_CHAIN) else { return };
        let mut shortened = chain.len() > LONGEST_CHAIN;
        chain.truncate(LONGEST_CHAIN);
        for source in &mut chain {
            shortened |= shorten_value(source, LONGEST_SOURCE);
        }
        headers.insert(wire::ERROR_CHAIN, chain);
        if shortened {
            self.mark(wire::ERROR_CHAIN);
        }
    }

    fn oldest_attempt(&mut self, headers: &mut Headers) -> bool {
        self.shorten_list(headers, wire::ATTEMPTS, |attempts| {
            let is_spare = attempts.len() > 1;
            if is_spare {
                attempts.remove(0);
            }
            is_spare
        })
    }

    fn innermost_source(&mut self, headers: &mut Headers) -> bool {
        self.shorten_list(headers, wire::ERROR_CHAIN, |chain| chain.pop().is_some())
    }

    fn last_attempt(&mut self, headers: &mut Headers) -> bool {
        let dropped = headers.remove(wire::ATTEMPTS).is_some();
        if dropped {
            self.mark(wire::ATTEMPTS);
        }
        dropped
    }

    fn shorten_list(&mut self, headers: &mut Headers, name: &str, shorten: fn(&mut Vec<HeaderValue>) -> bool) -> bool {
        let Some(mut value) = headers.remove(name) else { return false };
        let shortened = if let HeaderValue::Array(list) = &mut value { shorten(list) } else { false };
        headers.insert(name, value);
        if shortened {
            self.mark(name);
        }
        shortened
    }

    fn error(&mut self, headers: &mut Headers) -> bool {
        let shortened = shorten(headers, wire::ERROR, SHORT_ERROR);
        if shortened {
            self.mark(wire::ERROR);
        }
        shortened
    }

    /// Drops the largest of the message's own headers, as many as it takes.
    fn largest(&mut self, message: &mut Message, frame_max: usize) {
        if self.excess(message, frame_max) == 0 {
            return;
        }
        let is_kept = |name: &str, len: usize| KEPT.contains(&name) && len <= LONGEST_KEPT;
        let sizes = message.headers.iter().map(|(name, value)| (1 + name.len() + value.encoded_len(), name.clone()));
        let mut sizes: Vec<_> = sizes.filter(|(len, name)| !is_kept(name, *len)).collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        // The list of names grows meanwhile, so there is a second round.
        let mut sizes = sizes.into_iter();
        loop {
            let mut excess = self.excess(message, frame_max);
            if excess == 0 || sizes.len() == 0 {
                return;
            }
            for (len, name) in sizes.by_ref() {
                message.headers.remove(&name);
                self.mark(&name);
                excess = excess.saturating_sub(len);
                if excess == 0 {
                    break;
                }
            }
        }
    }
}

/// The number of the oldest attempt that is told of.
fn first_attempt(headers: &Headers) -> Option<i64> {
    headers.get(wire::ATTEMPTS)?.as_array()?.first()?.as_table()?.get("attempt")?.as_i64()
}

fn shorten(headers: &mut Headers, name: &str, limit: usize) -> bool {
    let Some(mut value) = headers.remove(name) else { return false };
    let shortened = shorten_value(&mut value, limit);
    headers.insert(name, value);
    shortened
}

fn shorten_value(value: &mut HeaderValue, limit: usize) -> bool {
    let Some(mut text) = value.as_str().map(str::to_owned) else { return false };
    let shortened = cut_text(&mut text, limit);
    *value = text.into();
    shortened
}
