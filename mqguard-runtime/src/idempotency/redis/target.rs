//! The server that a URL names.

use std::fmt;

use redis::io::tcp::TcpSettings;
use redis::{Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, RedisError};
use url::Url;

use super::super::invalid_url::InvalidUrl;

const FORMS: &str =
    "redis://[user:password@]host[:port][/database], rediss:// for TLS, or redis+unix:///path/to/socket[?db=database]";
const ENCODE: &str = "in a user name or password, `@`, `/`, `?`, `#` and `%` have to be percent-encoded";

/// Where to connect, and what to say there.
#[derive(Clone)]
pub(super) struct Target {
    address: ConnectionAddr,
    username: Option<String>,
    password: Option<String>,
    database: i64,
}

/// Without user and password.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.database)
    }
}

impl Target {
    /// No part of the URL is ever shown: a password with a `/` in it ends up in any of the parts.
    pub(super) fn parse(url: &str) -> Result<Self, InvalidUrl> {
        let url = Url::parse(url).map_err(|error| invalid(format!("{error}; expected {FORMS}; {ENCODE}")))?;
        if url.fragment().is_some() {
            return Err(invalid(format!("it has a fragment (`#...`), which means nothing here; {ENCODE}")));
        }
        match url.scheme() {
            "redis" | "valkey" | "rediss" | "valkeys" => Self::tcp(&url)?,
            "unix" | "redis+unix" | "valkey+unix" => Self::unix(&url)?,
            _ => return Err(invalid(format!("its scheme is not one of Redis; expected {FORMS}"))),
        }
        let info = url.into_connection_info().map_err(|error| invalid(error.to_string()))?;
        let login = info.redis_settings();
        Ok(Self {
            address: info.addr().clone(),
            username: login.username().map(ToOwned::to_owned),
            password: login.password().filter(|password| !password.is_empty()).map(ToOwned::to_owned),
            database: login.db(),
        })
    }

    fn tcp(url: &Url) -> Result<(), InvalidUrl> {
        if matches!(url.scheme(), "rediss" | "valkeys") && !cfg!(feature = "tls") {
            return Err(invalid("it asks for TLS, which this build lacks: enable the feature `tls` of mqguard"));
        }
        if url.query().is_some() {
            return Err(invalid(format!("it has a query (`?...`), which means nothing here; {ENCODE}")));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(invalid(format!("it names no host; expected {FORMS}")));
        }
        check_database(url.path().trim_matches('/'))
    }

    fn unix(url: &Url) -> Result<(), InvalidUrl> {
        if url.host_str().is_some_and(|host| !host.is_empty()) || matches!(url.path(), "" | "/") {
            return Err(invalid("it names no socket: expected redis+unix:///path/to/socket, with three slashes"));
        }
        // The path is shown; what stands before an `@` is meant to be a password.
        if url.path().contains('@') || url.path().contains("%40") {
            return Err(invalid(
                "it has an `@` in the path of its socket: a user and a password go behind it, as `?user=...&pass=...`",
            ));
        }
        url.query_pairs().try_for_each(|(name, value)| match &*name {
            "db" => check_database(&value),
            "user" | "pass" => Ok(()),
            _ => Err(invalid("of a Unix socket it may say `db`, `user` and `pass`, nothing else")),
        })
    }

    /// How to open a connection; nothing is said on it yet.
    pub(super) fn info(&self) -> Result<ConnectionInfo, RedisError> {
        // The crate's own login tells nothing of what the server answered, so that a full server looks like a wrong password.
        let silent = RedisConnectionInfo::default().set_skip_set_lib_name();
        let tcp = TcpSettings::default().set_nodelay(true);
        Ok(self.address.clone().into_connection_info()?.set_redis_settings(silent).set_tcp_settings(tcp))
    }

    /// What to say first on a new connection, one by one.
    pub(super) fn greeting(&self) -> Vec<Cmd> {
        let mut commands = Vec::new();
        if let Some(password) = &self.password {
            let mut auth = redis::cmd("AUTH");
            auth.arg(&self.username).arg(password);
            commands.push(auth);
        }
        if self.database != 0 {
            let mut select = redis::cmd("SELECT");
            select.arg(self.database);
            commands.push(select);
        }
        if commands.is_empty() {
            // A server that will not talk to us says so now.
            commands.push(redis::cmd("PING"));
        }
        commands
    }
}

fn invalid(reason: impl Into<String>) -> InvalidUrl {
    InvalidUrl(reason.into())
}

fn check_database(text: &str) -> Result<(), InvalidUrl> {
    match text {
        "" => Ok(()),
        number if number.parse::<u32>().is_ok() => Ok(()),
        _ => Err(invalid(format!("what follows the host is not the number of a database; {ENCODE}"))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn reason(url: &str) -> String {
        Target::parse(url).err().unwrap().to_string()
    }

    #[test]
    fn reads_the_usual_forms() {
        let shown = |url| Target::parse(url).unwrap().to_string();
        assert_eq!(shown("redis://localhost"), "localhost:6379/0");
        assert_eq!(shown("redis://u:p@cache.example:6380/3"), "cache.example:6380/3");
        assert_eq!(shown("redis://[::1]:7000/"), "::1:7000/0");
        assert_eq!(shown("valkey://10.0.0.1"), "10.0.0.1:6379/0");
        assert_eq!(shown("redis+unix:///run/redis.sock?db=2&pass=secret"), "/run/redis.sock/2");
        assert_eq!(shown("unix:///run/redis.sock"), "/run/redis.sock/0");
    }

    #[test]
    fn decodes_user_and_password() {
        let target = Target::parse("redis://us%65r:p%40s%2Fs+%25@host").unwrap();
        assert_eq!((target.username.as_deref(), target.password.as_deref()), (Some("user"), Some("p@s/s+%")));
        let target = Target::parse("redis://:secret@host").unwrap();
        assert_eq!((target.username.as_deref(), target.password.as_deref()), (None, Some("secret")));
    }

    #[test]
    fn says_what_is_wrong_and_shows_no_password() {
        for (url, why) in [
            ("", "relative URL without a base"),
            ("localhost:6379", "its scheme"),
            ("http://u:hunter2@host", "its scheme"),
            ("redis://", "no host"),
            ("redis:///1", "no host"),
            ("redis://:hunter2@", "empty host"),
            ("redis://:hunt/er2@host", "port"),
            ("redis://u:12/hunter2@host", "number of a database"),
            ("redis://:p@host/hunter2", "number of a database"),
            ("redis://:p@host/-1", "number of a database"),
            ("redis://:p#hunter2@host", "port"),
            ("redis://host/0#hunter2", "fragment"),
            ("redis://host/0?password=hunter2", "query"),
            ("redis://:%ff@host", "not valid UTF-8"),
            ("redis+unix://run/redis.sock", "three slashes"),
            ("redis+unix:///run/redis.sock?hunter2=1", "`db`"),
            ("redis+unix:///u:hunter2@/run/redis.sock", "`?user=...&pass=...`"),
            ("redis+unix:///u:hunter2%40run/redis.sock", "`?user=...&pass=...`"),
        ] {
            let reason = reason(url);
            assert!(reason.contains(why), "{url}: {reason}");
            assert!(!reason.contains("hunt") && !reason.contains("er2"), "{url}: {reason}");
        }
    }

    #[test]
    fn tls_needs_its_feature() {
        let parsed = Target::parse("rediss://host").map(|target| target.to_string());
        if cfg!(feature = "tls") {
            assert_eq!(parsed.unwrap(), "host:6379/0");
        } else {
            assert!(parsed.unwrap_err().to_string().contains("enable the feature `tls`"));
        }
    }
}
