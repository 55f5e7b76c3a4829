//! What an operator should know of a server before relying on it: what its settings can make it forget.

use std::collections::HashMap;

use redis::Value;

use super::super::contract::{Store, StoreError};
use super::answer::{Answer, unexpected, word};
use super::script::Call;
use super::{RedisStore, durability, eviction};

/// One pattern each: older servers take no more.
const SETTINGS: [&[&str]; 4] = [
    &["CONFIG", "GET", "maxmemory*"],
    &["CONFIG", "GET", "append*"],
    &["CONFIG", "GET", "save"],
    &["CONFIG", "GET", "min-replicas-to-write"],
];
const REPLICATION: &[&str] = &["INFO", "replication"];

/// The settings of a server, as it names them.
pub(super) type Settings = HashMap<String, String>;

/// What to tell the operator.
pub(super) async fn of(store: &RedisStore) -> Result<Vec<String>, StoreError> {
    let server = store.target.to_string();
    let settings = match settings(store).await {
        Ok(settings) => settings,
        Err(StoreError::Refused(why)) => {
            // Unless it is the login that was refused.
            store.ping().await?;
            return Ok(vec![unknown(&server, &why)]);
        }
        Err(why) => return Err(why),
    };
    let replicas = match ask(store, REPLICATION).await {
        Ok(value) => Ok(durability::replicas(word(&value).ok_or_else(|| unexpected(&value))?)),
        Err(StoreError::Refused(why)) => Err(why),
        Err(why) => return Err(why),
    };
    let warnings = [
        eviction::warning(&settings),
        durability::failover(&settings, replicas.as_ref().copied()),
        durability::restart(&settings),
    ];
    Ok(warnings.into_iter().flatten().map(|warning| format!("redis at {server}: {warning}")).collect())
}

async fn settings(store: &RedisStore) -> Result<Settings, StoreError> {
    let mut settings = Settings::new();
    for question in SETTINGS {
        match ask(store, question).await? {
            Value::Array(parts) => settings.extend(pairs(&parts)),
            other => return Err(unexpected(&other)),
        }
    }
    Ok(settings)
}

fn pairs(parts: &[Value]) -> impl Iterator<Item = (String, String)> {
    parts.chunks_exact(2).filter_map(|pair| Some((word(&pair[0])?.to_owned(), word(&pair[1])?.to_owned())))
}

async fn ask(store: &RedisStore, words: &'static [&'static str]) -> Result<Value, StoreError> {
    match store.batcher.ask(Call::Plain(words)).await? {
        Answer::Other(value) => Ok(value),
        other => Err(unexpected(&other)),
    }
}

/// When the server does not tell: managed ones forbid CONFIG, or do not have it.
fn unknown(server: &str, why: &str) -> String {
    format!(
        "redis at {server}: its settings could not be checked ({why}). Make sure that maxmemory-policy is noeviction, appendonly is yes, \
         and min-replicas-to-write is not 0 where it has replicas: a message whose record was dropped or lost can be processed twice"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_checked_is_said_too() {
        let text = unknown("host:6379/0", "NOPERM no CONFIG");
        assert!(
            ["host:6379/0", "could not be checked", "NOPERM", "noeviction", "appendonly"].iter().all(|part| text.contains(part))
        );
    }

    #[test]
    fn settings_are_read_in_pairs() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let read: Settings = pairs(&[bulk("save"), bulk(""), bulk("odd")]).collect();
        assert_eq!(read, Settings::from([("save".to_owned(), String::new())]));
    }
}
