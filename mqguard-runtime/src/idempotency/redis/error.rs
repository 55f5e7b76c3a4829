//! What an error of the server means to a caller.

use redis::ServerError;

use super::super::contract::StoreError;
use super::entry::Entry;

/// Pass by themselves, or with a little help from an operator: the question may be asked again.
const PASSING: [&str; 12] = [
    "OOM",
    "LOADING",
    "READONLY",
    "MISCONF",
    "BUSY",
    "CLUSTERDOWN",
    "MASTERDOWN",
    "NOREPLICAS",
    "TRYAGAIN",
    "NOSCRIPT",
    "FAILOVER",
    "UNBLOCKED",
];

/// What our own scripts say of a record that they cannot read.
const FOREIGN: &str = "MQGUARD";

/// What the server answered in place of `key`'s answer.
pub(super) fn of_server(key: &str, error: &ServerError) -> StoreError {
    of(key, error.code(), error.details().unwrap_or_default())
}

/// What one entry of a batch failed with: `WRONGTYPE Operation against ...`.
pub(super) fn of_script(entry: &Entry, why: &str) -> StoreError {
    let (code, details) = why.trim_end().split_once(' ').unwrap_or((why, ""));
    // Redis 6 says where in the script it was: `@user_script: 27: -OOM command not allowed ...`.
    let (code, details) = if code.starts_with('@') { ("ERR", why.trim_end()) } else { (code, details) };
    of(&entry.shown_key(), code, details)
}

/// Whether the server has become a replica.
pub(super) fn is_read_only(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(why) if why.contains("READONLY"))
}

fn of(key: &str, code: &str, details: &str) -> StoreError {
    let text = format!("{code} {details}");
    let code = match code {
        // Redis 6 wraps what a command in a script said.
        "ERR" => wrapped(details).unwrap_or("ERR"),
        code => code,
    };
    match code {
        "WRONGTYPE" => unusable(key, "another type of value is stored there"),
        FOREIGN => unusable(key, details),
        "MOVED" | "ASK" | "CROSSSLOT" => {
            StoreError::Refused(format!("the server is a node of a Redis Cluster, which this store does not use ({text})"))
        }
        code if PASSING.contains(&code) => StoreError::Unavailable(text),
        "ERR" if details.contains("max number of clients") => StoreError::Unavailable(text),
        _ => StoreError::Refused(text),
    }
}

fn unusable(key: &str, reason: &str) -> StoreError {
    StoreError::Unusable { key: key.into(), reason: reason.into() }
}

/// The code in `Error running script (call to f_0a): @user_script:1: WRONGTYPE Operation against ...` and the like.
fn wrapped(details: &str) -> Option<&str> {
    let (_, inner) = details.split_once("@user_script:")?;
    let mut words = inner.split([' ', ':', '-']).filter(|word| !word.is_empty());
    words.find(|word| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_code_that_redis_6_wraps() {
        let wrong = "Error running script (call to f_0a1b): @user_script:27: @user_script: 27: WRONGTYPE Operation against a key";
        assert_eq!(wrapped(wrong), Some("WRONGTYPE"));
        let oom = "Error running script (call to f_0a1b): @user_script:27: @user_script: 27: -OOM command not allowed when used";
        assert_eq!(wrapped(oom), Some("OOM"));
        let bare = "@user_script: 27: -OOM command not allowed when used memory > 'maxmemory'.\r\n";
        assert_eq!(wrapped(bare), Some("OOM"));
        assert_eq!(wrapped("unknown command 'EVALSHA'"), None);
    }
}
