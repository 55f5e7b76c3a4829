//! Whether the server may drop records to make room.

use super::warnings::Settings;

const CURE: &str = "Set `maxmemory-policy noeviction` on the server, or use a server of its own for the records";

/// What to tell the operator.
pub(super) fn warning(settings: &Settings) -> Option<String> {
    let policy = settings.get("maxmemory-policy").map_or("unknown", String::as_str);
    let limit = settings.get("maxmemory").map_or("0", String::as_str);
    let what = match policy {
        "noeviction" => return None,
        _ if policy.starts_with("volatile-") => "keys with an expiry, and every idempotency record has one",
        _ => "any key, idempotency records too",
    };
    let when = match limit {
        "0" => "No limit is set now, but once it is and is reached".to_owned(),
        bytes => format!("When its limit of {bytes} bytes is reached"),
    };
    Some(format!(
        "maxmemory-policy is {policy}. {when}, the server drops {what}: a message whose record was dropped can be processed twice. {CURE}"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(policy: &str, limit: &str) -> Option<String> {
        warning(&[("maxmemory", limit), ("maxmemory-policy", policy)].map(|(name, value)| (name.into(), value.into())).into())
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
}
