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
        "amqp" | "amqps" => Err(left_out("RabbitMQ", "rabbitmq")),
        other => Err(unknown("broker", other, "`memory://`, `amqp://user:password@host:5672/vhost` or `amqps://...`")),
    }
}

/// The store that a URL names, and the name by which attributes ask for it.
pub(super) fn store(url: &str) -> Result<(&'static str, Arc<dyn Store>), ConfigError> {
    match scheme(url).as_str() {
        "memory" => Ok(("memory", Arc::new(MemoryStore::new()))),
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "redis+unix" | "unix" => named("redis", crate::idempotency::RedisStore::new(url)),
        #[cfg(not(feature = "redis"))]
        "redis" | "rediss" | "redis+unix" | "unix" => Err(left_out("Redis", "redis")),
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => named("mysql", crate::idempotency::MySqlStore::new(url)),
        #[cfg(not(feature = "mysql"))]
        "mysql" | "mariadb" => Err(left_out("MySQL or MariaDB", "mysql")),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => named("postgres", crate::idempotency::PostgresStore::new(url)),
        #[cfg(not(feature = "postgres"))]
        "postgres" | "postgresql" => Err(left_out("PostgreSQL", "postgres")),
        #[cfg(feature = "sqlite")]
        "sqlite" => named("sqlite", crate::idempotency::SqliteStore::new(url)),
        #[cfg(not(feature = "sqlite"))]
        "sqlite" => Err(left_out("SQLite", "sqlite")),
        other => Err(unknown(
            "store",
            other,
            "`memory://`, `redis://host:6379/0`, `mysql://user:password@host/database`, `postgres://...` or `sqlite:file.db`",
        )),
    }
}

#[cfg(any(feature = "redis", feature = "mysql", feature = "postgres", feature = "sqlite"))]
fn named<S: Store>(
    name: &'static str,
    store: Result<S, crate::idempotency::InvalidUrl>,
) -> Result<(&'static str, Arc<dyn Store>), ConfigError> {
    match store {
        Ok(store) => Ok((name, Arc::new(store))),
        Err(error) => Err(ConfigError(error.to_string())),
    }
}

#[cfg(not(all(feature = "rabbitmq", feature = "redis", feature = "mysql", feature = "postgres", feature = "sqlite")))]
fn left_out(what: &str, feature: &str) -> ConfigError {
    ConfigError(format!("this build has no {what}: enable the feature `{feature}` of mqguard"))
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
