//! What the server answered.

use std::fmt;
use std::time::Duration;

use redis::Value;

use super::super::contract::{Claim, Settled, StoreError};
use super::entry::Entry;
use super::error::{of_script, of_server};
use super::script::Request;

/// The answer to one question.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// To a claim.
    Claim(Claim),
    /// To a first claim: there is a record already.
    Met,
    /// To a step.
    Settled(Settled),
    /// To anything else.
    Other(Value),
}

/// The answers to a batch, from what `batch.lua` returned.
pub(super) fn of_batch(entries: &[&Entry], value: Result<Value, StoreError>) -> Vec<Result<Answer, StoreError>> {
    let all = |why: &StoreError| entries.iter().map(|_| Err(why.clone())).collect();
    let mut parts = match value {
        Ok(Value::Array(parts)) => parts.into_iter(),
        Ok(Value::ServerError(error)) => return entries.iter().map(|entry| Err(of_server(&entry.shown_key(), &error))).collect(),
        Ok(other) => return all(&unexpected(&other)),
        Err(why) => return all(&why),
    };
    match parts.next() {
        Some(Value::BulkString(letters)) if letters.len() == entries.len() => {
            entries.iter().zip(letters).map(|(entry, letter)| one(entry, letter, &mut parts)).collect()
        }
        other => all(&other.map_or_else(missing, |other| unexpected(&other))),
    }
}

/// The answer to a request of another kind.
pub(super) fn of_other((request, value): (&Request<'_>, Result<Value, StoreError>)) -> Result<Answer, StoreError> {
    match (request, value?) {
        (_, Value::ServerError(error)) => Err(of_server(&request.subject(), &error)),
        (Request::FirstClaim(_), Value::Okay) => Ok(Answer::Claim(Claim::Granted { crashes: 0 })),
        (Request::FirstClaim(_), Value::Nil) => Ok(Answer::Met),
        (Request::FirstClaim(_), other) => Err(unexpected(&other)),
        (_, value) => Ok(Answer::Other(value)),
    }
}

fn one(entry: &Entry, letter: u8, carried: &mut impl Iterator<Item = Value>) -> Result<Answer, StoreError> {
    let mut number = || match carried.next() {
        Some(Value::Int(number)) => Ok(number),
        other => Err(other.map_or_else(missing, |other| unexpected(&other))),
    };
    let claim = match letter {
        b'a' => return Ok(Answer::Settled(Settled::Applied)),
        b'r' => return Ok(Answer::Settled(Settled::Refused)),
        b'e' => return Err(of_script(entry, &text(carried)?)),
        b'g' => Claim::Granted { crashes: count(number()?) },
        b'b' => Claim::Busy { left: Duration::from_millis(u64::try_from(number()?).unwrap_or(0).max(1)) },
        b's' => Claim::Stale,
        b'd' => Claim::Duplicate,
        b'c' => Claim::Conflict,
        b'l' => {
            let (generation, crashes) = (count(number()?), count(number()?));
            let error = text(carried)?;
            let error = if error.is_empty() { None } else { Some(serde_json::from_str(&error).unwrap_or(error)) };
            Claim::Letter { generation, error, crashes }
        }
        _ => return Err(unexpected(&Value::Int(letter.into()))),
    };
    Ok(Answer::Claim(claim))
}

fn text(carried: &mut impl Iterator<Item = Value>) -> Result<String, StoreError> {
    match carried.next() {
        Some(Value::BulkString(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        other => Err(other.map_or_else(missing, |other| unexpected(&other))),
    }
}

fn count(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(super) fn word(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(word) => Some(word),
        _ => None,
    }
}

/// Instead of the answer that is not there.
pub(super) fn missing() -> StoreError {
    unexpected(&Value::Nil)
}

pub(super) fn unexpected(value: &dyn fmt::Debug) -> StoreError {
    StoreError::Refused(format!("not an answer that redis would give: {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::super::super::contract::{Hold, Owner, Step};
    use super::super::super::identity::Identity;
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn answers(count: usize, value: Value) -> Vec<Result<Answer, StoreError>> {
        let identity = Identity::new("q", "", "1");
        let hold = Hold { identity, owner: Owner(1), ttl: Duration::ZERO };
        let entries: Vec<_> = (0..count).map(|_| Entry::settle(&hold, &Step::Complete)).collect();
        of_batch(&entries.iter().collect::<Vec<_>>(), Ok(value))
    }

    #[test]
    fn each_gets_its_own_and_what_it_carries() {
        let carried = [
            Value::Int(0),
            Value::Int(2),
            Value::Int(0),
            bulk("WRONGTYPE it is"),
            Value::Int(0),
            Value::Int(4),
            bulk(""),
            Value::Int(2),
            Value::Int(1),
            bulk("\"\\\"\""),
        ];
        let value = Value::Array([bulk("gagbserdcll")].into_iter().chain(carried).collect());
        let answers = answers(11, value);
        assert!(matches!(&answers[5], Err(StoreError::Unusable { .. })), "{answers:?}");
        let claim = |claim| Ok(Answer::Claim(claim));
        let expected = [
            claim(Claim::Granted { crashes: 0 }),
            Ok(Answer::Settled(Settled::Applied)),
            claim(Claim::Granted { crashes: 2 }),
            claim(Claim::Busy { left: Duration::from_millis(1) }),
            claim(Claim::Stale),
            answers[5].clone(),
            Ok(Answer::Settled(Settled::Refused)),
            claim(Claim::Duplicate),
            claim(Claim::Conflict),
            claim(Claim::Letter { generation: 0, error: None, crashes: 4 }),
            claim(Claim::Letter { generation: 2, error: Some("\"".into()), crashes: 1 }),
        ];
        assert_eq!(answers, expected);
    }

    #[test]
    fn what_is_no_answer_is_an_error_for_each() {
        let array = |letters: &str| Value::Array(vec![bulk(letters)]);
        for value in [Value::Nil, Value::Array(Vec::new()), array(""), array("aaa"), array("?g"), array("eb"), bulk("aa")] {
            let answers = answers(2, value.clone());
            assert_eq!(answers.len(), 2, "{value:?}");
            assert!(answers.iter().all(|answer| matches!(answer, Err(StoreError::Refused(_)))), "{value:?}");
        }
    }
}
