//! What an error of the server means to a caller.

use redis::ServerError;

use super::super::contract::StoreError;

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

/// The error of one question about `key`.
pub(super) fn of_server(key: &str, error: &ServerError) -> StoreError {
    let details = error.details().unwrap_or_default();
    let code = match error.code() {
        // Redis 6 wraps what a command in a script said.
        "ERR" => wrapped(details).unwrap_or("ERR"),
        code => code,
    };
    let text = format!("{} {details}", error.code());
    match code {
        "WRONGTYPE" => unusable(key, "another type of value is stored there"),
        FOREIGN => unusable(key, details.split(" script: ").next().unwrap_or(details)),
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

/// The code in `Error running script (call to f_0a): @user_script:1: WRONGTYPE Operation against ...`.
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
        assert_eq!(wrapped("unknown command 'EVALSHA'"), None);
    }
}
