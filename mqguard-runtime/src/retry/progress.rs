use std::time::{Duration, SystemTime};

use crate::broker::{HeaderValue, Headers};
use crate::consumer::ErrorText;
use crate::idempotency::Turn;
use crate::wire;

/// How far a message has come, as its headers say. Headers can be forged or damaged: what cannot be read counts as not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) generation: u32,
    pub(crate) retries: u32,
    pub(crate) deferrals: u32,
    /// How often this copy was put off because another worker had the message.
    pub(crate) busy: u32,
    /// How often this copy's predecessors were delivered and not settled: where no record tells how often a process died.
    pub(crate) crashes: u32,
    pub(crate) first_failure: Option<SystemTime>,
    pub(crate) failures: Vec<FailedAttempt>,
}

/// One failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// Which run of the message it was, from 1.
    pub attempt: u32,
    /// When it failed.
    pub at: SystemTime,
    /// The type of the error.
    pub kind: String,
    /// The error and its sources, shortened.
    pub error: String,
}

/// A retry copy carries the last failures only, and their texts shortened: headers have to fit in a frame.
const KEPT_FAILURES: usize = 10;
const KEPT_TEXT: usize = 512;
/// The longest name of an error's type. Those of generic types can be of any length.
pub(crate) const LONGEST_KIND: usize = 256;

impl Progress {
    pub(crate) fn read(headers: &Headers) -> Self {
        Self {
            generation: count(headers, wire::GENERATION),
            retries: count(headers, wire::ATTEMPT),
            deferrals: count(headers, wire::DEFERRALS),
            busy: count(headers, wire::BUSY),
            crashes: count(headers, wire::CRASHES),
            first_failure: headers.text(wire::FIRST_FAILURE).and_then(|text| humantime::parse_rfc3339(text).ok()),
            failures: last(read_failures(headers)),
        }
    }

    /// Of a delivery to be handled. A dead letter that comes back to the queue is a replay: the next generation begins, from the start.
    pub(crate) fn arriving(headers: &Headers) -> Self {
        let progress = Self::read(headers);
        if headers.get(wire::DIED).is_none() {
            return progress;
        }
        Self { generation: progress.generation.saturating_add(1), ..Self::default() }
    }

    pub(crate) fn write(&self, headers: &mut Headers) {
        headers.insert(wire::GENERATION, i64::from(self.generation));
        headers.insert(wire::DEFERRALS, i64::from(self.deferrals));
        self.write_counts(headers);
        if let Some(at) = self.first_failure {
            headers.insert(wire::FIRST_FAILURE, rfc3339(at));
        }
        if !self.failures.is_empty() {
            headers.insert(wire::ATTEMPTS, self.failures.iter().map(FailedAttempt::to_header).collect::<Vec<_>>());
        }
    }

    /// What tells how often this was put off, without the history of the message.
    pub(crate) fn write_counts(&self, headers: &mut Headers) {
        headers.insert(wire::ATTEMPT, i64::from(self.retries));
        for (name, count) in [(wire::BUSY, self.busy), (wire::CRASHES, self.crashes)] {
            headers.remove(name);
            if count > 0 {
                headers.insert(name, i64::from(count));
            }
        }
    }

    /// The turn of this run in the claim protocol.
    pub(crate) fn turn(&self) -> Turn {
        Turn { generation: self.generation, step: self.retries.saturating_add(self.deferrals) }
    }

    /// How often the handler has run, this run included.
    pub(crate) fn runs(&self) -> u32 {
        self.retries.saturating_add(self.deferrals).saturating_add(1)
    }

    /// Adds a failure of this run.
    pub(crate) fn failed(&mut self, at: SystemTime, error: &ErrorText) {
        // A first failure that is still to come is forged: it would put off the end of `within`.
        self.first_failure = Some(self.first_failure.map_or(at, |first| first.min(at)));
        let (mut kind, mut error) = (error.kind.clone(), error.to_string());
        cut_text(&mut kind, LONGEST_KIND);
        cut_text(&mut error, KEPT_TEXT);
        self.failures.push(FailedAttempt { attempt: self.runs(), at, kind, error });
    }

    /// As the next copy carries it.
    pub(crate) fn next(&self, counted: bool) -> Self {
        let mut next = Self { busy: 0, crashes: 0, ..self.clone() };
        if counted {
            next.retries = next.retries.saturating_add(1);
        } else {
            next.deferrals = next.deferrals.saturating_add(1);
        }
        next.failures = last(next.failures);
        next
    }
}

impl FailedAttempt {
    pub(crate) fn to_header(&self) -> HeaderValue {
        let mut table = Headers::new();
        table.insert("attempt", i64::from(self.attempt));
        table.insert("at", rfc3339(self.at));
        table.insert("kind", self.kind.as_str());
        table.insert("error", self.error.as_str());
        table.into()
    }

    fn from_header(value: &HeaderValue) -> Option<Self> {
        let table = value.as_table()?;
        Some(Self {
            attempt: count(table, "attempt"),
            at: humantime::parse_rfc3339(table.text("at")?).ok()?,
            kind: table.text("kind")?.to_owned(),
            error: table.text("error")?.to_owned(),
        })
    }
}

fn count(headers: &Headers, name: &str) -> u32 {
    let Some(value) = headers.get(name).and_then(HeaderValue::as_i64) else { return 0 };
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

fn read_failures(headers: &Headers) -> Vec<FailedAttempt> {
    let entries = headers.get(wire::ATTEMPTS).and_then(HeaderValue::as_array).unwrap_or_default();
    entries.iter().filter_map(FailedAttempt::from_header).collect()
}

/// The failures that a copy has room for.
fn last(mut failures: Vec<FailedAttempt>) -> Vec<FailedAttempt> {
    failures.drain(..failures.len().saturating_sub(KEPT_FAILURES));
    failures
}

/// The failures that a letter's headers tell.
pub(crate) fn failures(headers: &Headers) -> Vec<FailedAttempt> {
    read_failures(headers)
}

/// A time without what headers cannot carry of it.
pub(crate) fn whole_millis(time: SystemTime) -> SystemTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    time - Duration::from_nanos(u64::from(since.subsec_nanos() % 1_000_000))
}

/// A time as headers carry it, to the millisecond.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Cuts a text to at most `limit` bytes on a character boundary and marks the cut.
pub(crate) fn cut_text(text: &mut String, limit: usize) -> bool {
    const MARK: &str = " [cut]";
    if text.len() <= limit {
        return false;
    }
    text.truncate(text.floor_char_boundary(limit.saturating_sub(MARK.len())));
    text.push_str(MARK);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_a_hop() {
        let mut progress = Progress { generation: 1, retries: 2, deferrals: 3, busy: 4, crashes: 5, ..Progress::default() };
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        progress.failed(at, &ErrorText { kind: "T".into(), message: "db".into(), chain: vec!["io".into()] });
        let mut headers = Headers::new();
        progress.write(&mut headers);
        assert_eq!(Progress::read(&headers), progress);
        assert_eq!(progress.failures[0], FailedAttempt { attempt: 6, at, kind: "T".into(), error: "db: io".into() });
    }

    #[test]
    fn any_integer_width_counts_and_nonsense_counts_as_zero() {
        let cases = [
            (HeaderValue::I8(2), 2),
            (HeaderValue::U16(2), 2),
            (HeaderValue::I32(2), 2),
            (HeaderValue::I64(2), 2),
            (HeaderValue::I64(-7), 0),
            (HeaderValue::I64(i64::MAX), u32::MAX),
            (HeaderValue::from("2"), 0),
            (HeaderValue::F64(2.0), 0),
            (HeaderValue::Array(vec![HeaderValue::I8(2)]), 0),
            (HeaderValue::Void, 0),
        ];
        for (value, expected) in cases {
            let mut headers = Headers::new();
            headers.insert(wire::ATTEMPT, value.clone());
            assert_eq!(Progress::read(&headers).retries, expected, "{value:?}");
        }
    }

    #[test]
    fn a_copy_carries_the_last_failures_shortened() {
        let mut progress = Progress::default();
        for n in 0..30 {
            let message = format!("{n} {}", "é".repeat(1000));
            progress.failed(SystemTime::UNIX_EPOCH, &ErrorText { kind: "T".into(), message, chain: Vec::new() });
        }
        let next = progress.next(true);
        assert_eq!((next.retries, next.failures.len()), (1, 10));
        assert!(next.failures[0].error.starts_with("20 "));
        assert!(next.failures.iter().all(|failure| failure.error.len() <= 512 && failure.error.ends_with(" [cut]")));
    }
}
