//! Whether the server may drop records to make room.

use redis::Value;

use super::super::contract::StoreError;
use super::answer::{unexpected, word};

const CURE: &str = "Set `maxmemory-policy noeviction` on the server, or use a server of its own for the records";

/// What to tell the operator when the server does not tell: managed ones forbid CONFIG, or do not have it.
pub(super) fn unknown(server: &str, why: &str) -> String {
    format!(
        "redis at {server}: whether the server may evict idempotency records could not be checked ({why}). Make sure that its \
         maxmemory-policy is noeviction: a message whose record was evicted can be processed twice"
    )
}

/// What to tell the operator, from the answer to `CONFIG GET maxmemory*`.
pub(super) fn warning(server: &str, value: &Value) -> Result<Option<String>, StoreError> {
    let Value::Array(parts) = value else { return Err(unexpected(value)) };
    let setting = |name| parts.chunks_exact(2).find(|pair| word(&pair[0]) == Some(name)).and_then(|pair| word(&pair[1]));
    let policy = setting("maxmemory-policy").unwrap_or("unknown");
    let limit = setting("maxmemory").unwrap_or("0");
    let what = match policy {
        "noeviction" => return Ok(None),
        _ if policy.starts_with("volatile-") => "keys with an expiry, and every idempotency record has one",
        _ => "any key, idempotency records too",
    };
    let when = match limit {
        "0" => "No limit is set now, but once it is and is reached".to_owned(),
        bytes => format!("When its limit of {bytes} bytes is reached"),
    };
    Ok(Some(format!(
        "redis at {server}: maxmemory-policy is {policy}. {when}, the server drops {what}: a message whose record was dropped can be \
         processed twice. {CURE}"
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn config(settings: &[(&str, &str)]) -> Value {
        let bulk = |text: &str| Value::BulkString(text.into());
        Value::Array(settings.iter().flat_map(|(name, value)| [bulk(name), bulk(value)]).collect())
    }

    fn of(policy: &str, limit: &str) -> Option<String> {
        warning("host:6379/0", &config(&[("maxmemory", limit), ("maxmemory-policy", policy)])).unwrap()
    }

    #[test]
    fn noeviction_is_fine() {
        assert_eq!(of("noeviction", "0"), None);
        assert_eq!(of("noeviction", "1000000"), None);
    }

    #[test]
    fn tells_what_can_be_dropped_and_the_cure() {
        for (policy, limit, tells) in [
            ("allkeys-lru", "1000000", ["any key", "1000000 bytes", "noeviction"]),
            ("volatile-ttl", "1000000", ["every idempotency record has one", "1000000 bytes", "noeviction"]),
            ("volatile-lru", "0", ["every idempotency record has one", "No limit is set now", "noeviction"]),
        ] {
            let text = of(policy, limit).unwrap();
            assert!(text.contains(policy) && tells.iter().all(|tell| text.contains(tell)), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_checked_is_said_too() {
        let text = unknown("host:6379/0", "NOPERM no CONFIG");
        assert!(text.contains("could not be checked") && text.contains("NOPERM") && text.contains("noeviction"), "{text}");
        assert!(warning("host:6379/0", &Value::Nil).is_err());
    }
}
