//! The scripts, what is asked of them and what they answer.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Cmd, Value};

use super::super::contract::{Claim, ClaimRequest, Hold, Owner, Settled, Step, StoreError};
use super::super::identity::Identity;
use super::super::protocol::{OWED_FOR, cut, millis};

const PREFIX: &str = "mq:dedup:";

/// The longest lease or retention, about 100 years: PEXPIRE refuses one that overflows, after the record was written.
const LONGEST: u64 = 100 * 366 * 24 * 3_600 * 1_000;

/// The most bytes of each part of the identity that a record shows.
const MAX_SHOWN: usize = 256;

/// A script, and the name by which the server remembers it.
#[derive(Debug)]
pub(super) struct Lua {
    source: &'static str,
    hash: LazyLock<String>,
}

macro_rules! lua {
    ($file:literal) => {
        Lua { source: include_str!($file), hash: LazyLock::new(|| redis::Script::new(include_str!($file)).get_hash().to_owned()) }
    };
}

static CLAIM: Lua = lua!("claim.lua");
static SETTLE: Lua = lua!("settle.lua");
static PING: Lua = lua!("ping.lua");

/// One question to the server.
#[derive(Debug)]
pub(super) enum Call {
    /// Run a script on one record.
    Script { script: &'static Lua, key: String, args: Vec<Vec<u8>> },
    /// `CONFIG GET` of what matches.
    Config(&'static str),
}

impl Call {
    pub(super) fn claim(request: &ClaimRequest) -> Self {
        let ClaimRequest { identity, turn, owner, lease, ttl, max_crashes } = request;
        let args = vec![
            text(turn.generation),
            text(turn.step),
            text(owner),
            time(*lease),
            time(*ttl),
            time(OWED_FOR.max(*ttl)),
            text(max_crashes),
            shown(&identity.consumer),
            shown(&identity.business_key),
            shown(&identity.message_id),
        ];
        Self::Script { script: &CLAIM, key: key(identity), args }
    }

    pub(super) fn settle(hold: &Hold, step: &Step) -> Self {
        let Hold { identity, owner, ttl } = hold;
        let mut args = vec![name(step).into(), text(owner), time(*ttl), time(OWED_FOR.max(*ttl))];
        match step {
            Step::Complete | Step::Lettered => {}
            Step::Release { next } => args.extend([text(next.generation), text(next.step)]),
            Step::Condemn { error, lease } => args.extend([time(*lease), cut(error).into()]),
            Step::Renew { lease } => args.push(time(*lease)),
        }
        Self::Script { script: &SETTLE, key: key(identity), args }
    }

    pub(super) fn ping() -> Self {
        // A key of its own, so that no other ping is in its way.
        Self::Script { script: &PING, key: format!("{PREFIX}ping:{}", Owner::random()), args: Vec::new() }
    }

    /// What the question is about, for errors.
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Script { key, .. } => key,
            Self::Config(pattern) => pattern,
        }
    }

    /// As a command; a script by its hash, or whole, which makes the server remember it.
    pub(super) fn command(&self, whole: bool) -> Cmd {
        let mut command = Cmd::new();
        match self {
            Self::Script { script, key, args } => {
                if whole {
                    command.arg("EVAL").arg(script.source);
                } else {
                    command.arg("EVALSHA").arg(script.hash.as_str());
                }
                command.arg(1).arg(key).arg(args);
            }
            Self::Config(pattern) => {
                command.arg("CONFIG").arg("GET").arg(*pattern);
            }
        }
        command
    }

    /// Whether both run the same script.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Script { script: one, .. }, Self::Script { script: other, .. }) => std::ptr::eq(*one, *other),
            _ => false,
        }
    }
}

/// The key of a message's record.
pub(super) fn key(identity: &Identity) -> String {
    format!("{PREFIX}{:032x}", u128::from_be_bytes(identity.digest()))
}

fn text(value: impl ToString) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn time(duration: Duration) -> Vec<u8> {
    text(millis(duration).min(LONGEST))
}

fn shown(part: &str) -> Vec<u8> {
    part[..part.floor_char_boundary(MAX_SHOWN)].into()
}

fn name(step: &Step) -> &'static str {
    match step {
        Step::Complete => "complete",
        Step::Release { .. } => "release",
        Step::Condemn { .. } => "condemn",
        Step::Lettered => "lettered",
        Step::Renew { .. } => "renew",
    }
}

/// Reads what the claim script returned.
pub(super) fn claimed(value: &Value) -> Result<Claim, StoreError> {
    let Value::Array(parts) = value else { return Err(unexpected(value)) };
    let (first, rest) = parts.split_first().ok_or_else(|| unexpected(value))?;
    let answer = match (word(first), rest) {
        (Some("granted"), [Value::Int(crashes)]) => Some(Claim::Granted { crashes: count(*crashes) }),
        (Some("busy"), [Value::Int(left)]) => {
            Some(Claim::Busy { left: Duration::from_millis(u64::try_from(*left).unwrap_or(0).max(1)) })
        }
        (Some("stale"), []) => Some(Claim::Stale),
        (Some("duplicate"), []) => Some(Claim::Duplicate),
        (Some("letter"), [Value::Int(crashes), error]) => {
            let error = match error {
                Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                _ => None,
            };
            Some(Claim::Letter { error, crashes: count(*crashes) })
        }
        _ => None,
    };
    answer.ok_or_else(|| unexpected(value))
}

/// Reads what the settle script returned.
pub(super) fn settled(value: &Value) -> Result<Settled, StoreError> {
    match word(value) {
        Some("applied") => Ok(Settled::Applied),
        Some("refused") => Ok(Settled::Refused),
        _ => Err(unexpected(value)),
    }
}

fn count(crashes: i64) -> u32 {
    u32::try_from(crashes).unwrap_or(u32::MAX)
}

pub(super) fn word(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(word) => Some(word),
        _ => None,
    }
}

pub(super) fn unexpected(value: &Value) -> StoreError {
    StoreError::Refused(format!("not an answer that redis would give: {value:?}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn the_key_is_the_digest_in_hex() {
        let identity = Identity { consumer: "q".into(), business_key: String::new(), message_id: "1".into() };
        let hex: String = identity.digest().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(key(&identity), format!("mq:dedup:{hex}"));
    }

    #[test]
    fn reads_answers() {
        let left = Duration::from_millis(1);
        assert_eq!(claimed(&Value::Array(vec![bulk("busy"), Value::Int(0)])), Ok(Claim::Busy { left }));
        assert_eq!(claimed(&Value::Array(vec![bulk("granted"), Value::Int(2)])), Ok(Claim::Granted { crashes: 2 }));
        assert_eq!(
            claimed(&Value::Array(vec![bulk("letter"), Value::Int(4), Value::Nil])),
            Ok(Claim::Letter { error: None, crashes: 4 })
        );
        assert_eq!(settled(&bulk("refused")), Ok(Settled::Refused));
        for value in [Value::Nil, Value::Array(Vec::new()), Value::Array(vec![bulk("granted")]), bulk("granted")] {
            assert!(matches!(claimed(&value), Err(StoreError::Refused(_))), "{value:?}");
            assert!(matches!(settled(&value), Err(StoreError::Refused(_))), "{value:?}");
        }
    }

    #[test]
    fn what_a_record_shows_is_cut_at_a_character() {
        assert_eq!(shown(&"é".repeat(200)).len(), 256);
        assert_eq!(shown(&format!("a{}", "é".repeat(200))).len(), 255);
    }

    #[test]
    fn no_time_overflows() {
        assert_eq!(time(Duration::MAX), LONGEST.to_string().into_bytes());
    }
}
