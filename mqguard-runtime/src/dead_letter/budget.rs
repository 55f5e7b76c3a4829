//! Keeping the headers of a message within one frame: RabbitMQ and its clients close the connection over a longer one.

use crate::broker::{HeaderValue, Headers, Message};
use crate::retry::cut_text;
use crate::wire;

/// The longest error text, and the longest text of one source and of one attempt, in bytes.
const LONGEST_ERROR: usize = 4096;
const LONGEST_SOURCE: usize = 1024;
/// The longest chain of sources.
const LONGEST_CHAIN: usize = 32;
/// What an error text is cut to when there is no room.
const SHORT_ERROR: usize = 256;

/// Bytes that the headers of `message` may take in a frame of `frame_max`. Leaves room for what the broker adds when it dead-letters.
fn room(message: &Message, frame_max: usize) -> usize {
    let frame_and_content_header = 8 + 14;
    let for_the_broker = 4096.min(frame_max / 8);
    frame_max.saturating_sub(frame_and_content_header + for_the_broker + properties_len(message))
}

fn properties_len(message: &Message) -> usize {
    let properties = &message.properties;
    let texts = [
        &properties.message_id,
        &properties.correlation_id,
        &properties.content_type,
        &properties.content_encoding,
        &properties.kind,
        &properties.app_id,
        &properties.user_id,
        &properties.reply_to,
        &properties.expiration,
    ];
    texts.into_iter().flatten().map(|text| 1 + text.len()).sum::<usize>() + 8 + 1 + 1
}

/// Whether a message's headers fit. 0 is no limit.
pub(crate) fn fits(message: &Message, frame_max: usize) -> bool {
    frame_max == 0 || message.headers.encoded_len() <= room(message, frame_max)
}

/// Makes a retry copy fit, at the cost of its history. Returns whether it does now.
pub(crate) fn fit_copy(message: &mut Message, frame_max: usize) -> bool {
    if !fits(message, frame_max) && message.headers.remove(wire::ATTEMPTS).is_some() {
        message.headers.insert(wire::CUT, vec![HeaderValue::from(wire::ATTEMPTS)]);
    }
    fits(message, frame_max)
}

/// Makes a letter fit, whatever it takes: first the oldest attempts go, then the sources, then the rest of the error, last the largest
/// headers of the message itself. What was cut is listed in `mqguard-cut`.
pub(crate) fn fit_letter(message: &mut Message, frame_max: usize) {
    let mut cut = Cut::default();
    cut.limit_texts(&mut message.headers);
    type Measure = fn(&mut Cut, &mut Headers) -> bool;
    let measures: [Measure; 4] = [Cut::oldest_attempt, Cut::chain, Cut::error, Cut::largest];
    for measure in measures {
        while !fits(&cut.marked(message), frame_max) && measure(&mut cut, &mut message.headers) {}
    }
    message.headers = cut.marked(message).headers;
}

/// The names of the headers that were shortened or dropped.
#[derive(Default)]
struct Cut(Vec<String>);

impl Cut {
    fn mark(&mut self, name: &str) {
        if !self.0.iter().any(|cut| cut == name) {
            self.0.push(name.to_owned());
        }
    }

    fn marked(&self, message: &Message) -> Message {
        let mut message = message.clone();
        if !self.0.is_empty() {
            // A thousand dropped headers must not make the list itself too long.
            let names = self.0.iter().take(16).map(|name| HeaderValue::from(name.as_str()));
            message.headers.insert(wire::CUT, names.collect::<Vec<_>>());
        }
        message
    }

    fn limit_texts(&mut self, headers: &mut Headers) {
        if shorten(headers, wire::ERROR, LONGEST_ERROR) {
            self.mark(wire::ERROR);
        }
        self.limit_attempts(headers);
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

    /// The error of the last attempt comes at its full length, and could push all attempts out of the frame.
    fn limit_attempts(&mut self, headers: &mut Headers) {
        let Some(HeaderValue::Array(mut attempts)) = headers.remove(wire::ATTEMPTS) else { return };
        let mut shortened = false;
        for attempt in &mut attempts {
            if let HeaderValue::Table(attempt) = attempt {
                shortened |= shorten(attempt, "error", LONGEST_SOURCE);
            }
        }
        headers.insert(wire::ATTEMPTS, attempts);
        if shortened {
            self.mark(wire::ATTEMPTS);
        }
    }

    fn oldest_attempt(&mut self, headers: &mut Headers) -> bool {
        let Some(HeaderValue::Array(mut attempts)) = headers.remove(wire::ATTEMPTS) else { return false };
        if attempts.is_empty() {
            return false;
        }
        attempts.remove(0);
        headers.insert(wire::ATTEMPTS, attempts);
        self.mark(wire::ATTEMPTS);
        true
    }

    fn chain(&mut self, headers: &mut Headers) -> bool {
        self.mark(wire::ERROR_CHAIN);
        headers.remove(wire::ERROR_CHAIN).is_some()
    }

    fn error(&mut self, headers: &mut Headers) -> bool {
        self.mark(wire::ERROR);
        shorten(headers, wire::ERROR, SHORT_ERROR)
    }

    fn largest(&mut self, headers: &mut Headers) -> bool {
        let size = |value: &HeaderValue| {
            let mut alone = Headers::new();
            alone.insert("", value.clone());
            alone.encoded_len()
        };
        let foreign = headers.iter().filter(|(name, _)| !name.starts_with("mqguard-"));
        let Some(name) = foreign.max_by_key(|(name, value)| name.len() + size(value)).map(|(name, _)| name.clone()) else {
            return false;
        };
        headers.remove(&name);
        self.mark(&name);
        true
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The last attempt comes with its whole error. It is shortened; the attempts are not dropped for it.
    #[test]
    fn a_long_error_does_not_cost_the_attempts() {
        let attempt = |error: String| HeaderValue::Table([("error".to_owned(), HeaderValue::from(error))].into_iter().collect());
        let mut message = Message::default();
        message.headers.insert(wire::ATTEMPTS, vec![attempt("short".into()), attempt("é".repeat(150_000))]);
        fit_letter(&mut message, 131_072);
        let attempts = message.headers.get(wire::ATTEMPTS).and_then(HeaderValue::as_array).unwrap_or_default();
        let errors: Vec<&str> = attempts.iter().filter_map(|attempt| attempt.as_table()?.text("error")).collect();
        assert_eq!(errors.len(), 2);
        assert!(errors[0] == "short" && errors[1].len() <= LONGEST_SOURCE && errors[1].ends_with("é [cut]"), "{errors:?}");
        assert_eq!(message.headers.get(wire::CUT), Some(&HeaderValue::Array(vec![HeaderValue::from(wire::ATTEMPTS)])));
    }
}
