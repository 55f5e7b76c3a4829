use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::budget::fit_letter;
use super::reason::Reason;
use crate::broker::{Delivery, HeaderValue, Message};
use crate::consumer::{ConsumerSpec, ErrorText};
use crate::retry::{Progress, copy, rfc3339};
use crate::wire;

/// The end of a message: why, with which error, when. Kept in the idempotency record until the letter is out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Death {
    reason: String,
    pub(crate) error: ErrorText,
    at_ms: u64,
}

impl Death {
    pub(crate) fn new(reason: &Reason, error: ErrorText, at: SystemTime) -> Self {
        let at_ms = at.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        Self { reason: reason.to_string(), error, at_ms }
    }

    pub(crate) fn reason(&self) -> Reason {
        Reason::from_name(&self.reason)
    }

    fn at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.at_ms)
    }

    /// As the store keeps it.
    pub(crate) fn to_record(&self) -> String {
        // Serializing a struct of strings and numbers cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From the store; text that is not one of ours becomes the error of a fatal end.
    pub(crate) fn from_record(record: &str, now: SystemTime) -> Self {
        serde_json::from_str(record).unwrap_or_else(|_| {
            let error = ErrorText { kind: "unknown".into(), message: record.to_owned(), chain: Vec::new() };
            Self::new(&Reason::Fatal, error, now)
        })
    }
}

/// The dead letter of a delivery: body, properties and headers as they came, and what happened.
pub(crate) fn letter(delivery: &Delivery, progress: &Progress, death: &Death, spec: &ConsumerSpec, frame_max: usize) -> Message {
    let mut message = copy::detached(delivery);
    let headers = &mut message.headers;
    copy::end_letter(headers);
    progress.write(headers);
    // A replay begins anew: its first run is attempt 0.
    headers.remove(wire::ATTEMPT);
    headers.remove(wire::DEFERRALS);
    headers.remove(wire::BUSY);
    headers.remove(wire::CRASHES);
    headers.insert(wire::RUNS, i64::from(runs(progress, &death.reason())));
    headers.insert(wire::REASON, death.reason.as_str());
    headers.insert(wire::ERROR_KIND, death.error.kind.as_str());
    headers.insert(wire::ERROR, death.error.message.as_str());
    headers
        .insert(wire::ERROR_CHAIN, death.error.chain.iter().map(|source| HeaderValue::from(source.as_str())).collect::<Vec<_>>());
    headers.insert(wire::DIED, rfc3339(death.at()));
    headers.insert(wire::CONSUMER, format!("{}::{}", spec.module, spec.name));
    headers.insert(wire::QUEUE, spec.queue);
    headers.insert(wire::HOST, host());
    fit_letter(&mut message, frame_max);
    message
}

/// What could not be read or identified never ran.
fn runs(progress: &Progress, reason: &Reason) -> u32 {
    match reason {
        Reason::Undecodable | Reason::MissingId => progress.runs() - 1,
        _ => progress.runs(),
    }
}

fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| hostname::get().map_or_else(|_| "unknown".into(), |name| name.to_string_lossy().into_owned()))
}
