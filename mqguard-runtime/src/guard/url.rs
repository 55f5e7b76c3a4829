//! What a URL names: a broker or a store.

use std::sync::Arc;

use super::error::ConfigError;
use crate::broker::{Broker, MemoryBroker};
use crate::idempotency::{MemoryStore, Store};

/// The broker that a URL names.
pub(super) fn broker(url: &str) -> Result<Arc<dyn Broker>, ConfigError> {
    match scheme(url).as_str() {
        "memory" => Ok(Arc::new(MemoryBroker::new())),
        #[cfg(feature = "rabbitmq")]
        "amqp" | "amqps" => match crate::broker::RabbitMq::new(url) {
            Ok(broker) => Ok(Arc::new(broker)),
            Err(error) => Err(ConfigError(error.to_string())),
        },
        #[cfg(not(feature = "rabbitmq"))]
        "amqp" | "amqps" => Err(ConfigError("this build has no RabbitMQ: enable the feature `rabbitmq` of mqguard".into())),
        other => Err(unknown("broker", other, "`memory://`, `amqp://user:password@host:5672/vhost` or `amqps://...`")),
    }
}

/// The store that a URL names, and the name by which attributes ask for it.
pub(super) fn store(url: &str) -> Result<(&'static str, Arc<dyn Store>), ConfigError> {
    match scheme(url).as_str() {
        "memory" => Ok(("memory", Arc::new(MemoryStore::new()))),
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "redis+unix" | "unix" => match crate::idempotency::RedisStore::new(url) {
            Ok(store) => Ok(("redis", Arc::new(store))),
            Err(error) => Err(ConfigError(error.to_string())),
        },
        #[cfg(not(feature = "redis"))]
        "redis" | "rediss" | "redis+unix" | "unix" => {
            Err(ConfigError("this build has no Redis: enable the feature `redis` of mqguard".into()))
        }
        other => Err(unknown("store", other, "`memory://`, `redis://host:6379/0` or `rediss://...`")),
    }
}

/// The scheme in small letters; empty when what is before the colon is none, for then it may be a password.
fn scheme(url: &str) -> String {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    let is_one = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if is_one { scheme } else { String::new() }
}

/// Only the scheme is shown: the rest may hold a password.
fn unknown(what: &str, scheme: &str, known: &str) -> ConfigError {
    if scheme.is_empty() {
        ConfigError(format!("the {what} URL has no scheme: write {known}"))
    } else {
        ConfigError(format!("there is no {what} for `{scheme}:` URLs: write {known}"))
    }
}
