use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};

/// The right form, shown with every mistake.
const FORM: &str = "amqp://user:password@host:5672,another-host:5672/virtual-host?heartbeat=5";

/// What may follow the question mark. All are numbers.
const PARAMETERS: [&str; 4] = ["heartbeat", "connection_timeout", "frame_max", "channel_max"];

/// Seconds, of which two pass before a connection counts as dead; RabbitMQ's own default of 60 finds that too late.
const DEFAULT_HEARTBEAT: u16 = 5;

/// For one node, with TLS and log-in.
const DEFAULT_CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// A RabbitMQ URL that cannot be used. Tells what is wrong with it, never what is in it: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the RabbitMQ URL {problem}. It looks like `{FORM}`")]
pub struct RabbitMqUrlError {
    problem: String,
}

impl RabbitMqUrlError {
    fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into() }
    }
}

/// The nodes of a cluster, and how to log in to each of them.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Nodes {
    tls: bool,
    user: String,
    password: String,
    virtual_host: String,
    hosts: Vec<(String, u16)>,
    heartbeat: u16,
    connection_timeout: Duration,
    frame_max: Option<u32>,
    channel_max: Option<u16>,
}

impl Nodes {
    pub(super) fn len(&self) -> usize {
        self.hosts.len()
    }

    /// How long one node may take to answer a connection attempt.
    pub(super) fn connection_timeout(&self) -> Duration {
        self.connection_timeout
    }

    /// The size of frames that is asked for, in bytes.
    pub(super) fn frame_max(&self) -> Option<u32> {
        self.frame_max
    }

    /// `host:port` of a node.
    pub(super) fn name(&self, index: usize) -> String {
        self.hosts.get(index).map_or_else(String::new, |(host, port)| authority(host, *port))
    }

    /// What the client library connects to. Holds the password: never print it.
    pub(super) fn uri(&self, index: usize) -> AMQPUri {
        let (host, port) = self.hosts.get(index).cloned().unwrap_or_default();
        AMQPUri {
            scheme: if self.tls { AMQPScheme::AMQPS } else { AMQPScheme::AMQP },
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo { username: self.user.clone(), password: self.password.clone() },
                host,
                port,
            },
            vhost: self.virtual_host.clone(),
            query: AMQPQueryString {
                // Asked for while the connection is opened, where more is known.
                frame_max: None,
                channel_max: self.channel_max,
                heartbeat: Some(self.heartbeat),
                connection_timeout: None,
                auth_mechanism: None,
            },
        }
    }
}

impl fmt::Display for Nodes {
    /// The URL with the password masked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.hosts.iter().map(|(host, port)| authority(host, *port)).collect();
        let scheme = if self.tls { "amqps" } else { "amqp" };
        let virtual_host = if self.virtual_host == "/" { "" } else { &self.virtual_host };
        write!(f, "{scheme}://{}:***@{}/{virtual_host}", self.user, hosts.join(","))
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Nodes {
    type Err = RabbitMqUrlError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let Some((scheme, rest)) = url.trim().split_once("://") else {
            return Err(RabbitMqUrlError::new("has no scheme (`amqp://`)"));
        };
        let tls = match scheme {
            "amqp" => false,
            "amqps" if cfg!(feature = "tls") => true,
            "amqps" => {
                return Err(RabbitMqUrlError::new(
                    "asks for TLS (`amqps://`), which this build cannot do: enable the feature `tls` of the crate `mqguard`",
                ));
            }
            _ => return Err(RabbitMqUrlError::new("has a scheme other than `amqp` and `amqps`")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        // A password with one of these characters in it ends the host part early: what follows must not be shown.
        if rest.contains('@') {
            return Err(RabbitMqUrlError::new(
                "has an `@` after the host part: in a user or password write `/` as %2F, `?` as %3F, `#` as %23 and `@` as %40",
            ));
        }
        let (user, password, hosts) = log_in(authority)?;
        let (path, query) = rest.split_once('?').map_or((rest, ""), |(path, query)| (path, query));
        let mut nodes = Self {
            tls,
            user,
            password,
            virtual_host: virtual_host(path)?,
            hosts: hosts.split(',').enumerate().map(|(n, host)| node(host, n + 1, tls)).collect::<Result<_, _>>()?,
            heartbeat: DEFAULT_HEARTBEAT,
            connection_timeout: DEFAULT_CONNECTION_TIMEOUT,
            frame_max: None,
            channel_max: None,
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            nodes.set(parameter)?;
        }
        Ok(nodes)
    }
}

impl Nodes {
    fn set(&mut self, parameter: &str) -> Result<(), RabbitMqUrlError> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let wrong =
            |what: &str| RabbitMqUrlError::new(format!("gives the parameter `{name}` a value that it cannot have: it is {what}"));
        match name {
            "heartbeat" => {
                self.heartbeat = value.parse().map_err(|_| wrong("in seconds, at most 65535; 0 leaves it to the server"))?
            }
            "connection_timeout" => {
                let millis: u32 = value.parse().map_err(|_| wrong("in milliseconds, at least 1"))?;
                if millis == 0 {
                    return Err(wrong("in milliseconds, at least 1"));
                }
                self.connection_timeout = Duration::from_millis(millis.into());
            }
            "frame_max" => match value.parse() {
                Ok(bytes) if bytes == 0 || bytes >= 4096 => self.frame_max = Some(bytes),
                _ => return Err(wrong("in bytes, at least 4096; 0 leaves it to the server")),
            },
            "channel_max" => {
                self.channel_max = Some(value.parse().map_err(|_| wrong("at most 65535; 0 leaves it to the server"))?)
            }
            _ => {
                let known = PARAMETERS.join("`, `");
                return Err(RabbitMqUrlError::new(format!("has an unknown parameter `{name}`: the known ones are `{known}`")));
            }
        }
        Ok(())
    }
}

/// User, password and the list of hosts.
fn log_in(authority: &str) -> Result<(String, String, &str), RabbitMqUrlError> {
    let Some((credentials, hosts)) = authority.rsplit_once('@') else {
        // RabbitMQ's default user, which it lets in from the same machine only.
        return Ok(("guest".into(), "guest".into(), authority));
    };
    let Some((user, password)) = credentials.split_once(':') else {
        return Err(RabbitMqUrlError::new("names a user but no password"));
    };
    let user =
        decode(user).ok_or_else(|| RabbitMqUrlError::new("has a `%` in the user that no two hexadecimal digits follow"))?;
    let password = decode(password).ok_or_else(|| {
        RabbitMqUrlError::new("has a `%` in the password that no two hexadecimal digits follow: write `%` as %25")
    })?;
    Ok((user, password, hosts))
}

/// `host`, `host:port`, `[IPv6]` or `[IPv6]:port`. What is wrong is not shown: it may be a piece of a password.
fn node(text: &str, number: usize, tls: bool) -> Result<(String, u16), RabbitMqUrlError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest
                .split_once(']')
                .ok_or_else(|| RabbitMqUrlError::new(format!("has no `]` after the IPv6 address of host {number}")))?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').unwrap_or("")) })
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(RabbitMqUrlError::new(format!("has no host{}", if number > 1 { " after a comma" } else { "" })));
    }
    let port = match port {
        None => {
            if tls {
                5671
            } else {
                5672
            }
        }
        Some(port) => match port.parse() {
            Ok(port) if port != 0 => port,
            _ => return Err(RabbitMqUrlError::new(format!("has a port of host {number} that is no number from 1 to 65535"))),
        },
    };
    Ok((host.into(), port))
}

/// The virtual host; the default one, `/`, when there is none.
fn virtual_host(path: &str) -> Result<String, RabbitMqUrlError> {
    let name = path.strip_prefix('/').unwrap_or(path);
    match name {
        "" | "/" => return Ok("/".into()),
        _ if name.contains('/') => return Err(RabbitMqUrlError::new("has a `/` in the virtual host: write it as %2F")),
        _ if name.contains('#') => return Err(RabbitMqUrlError::new("has a `#` in the virtual host: write it as %23")),
        _ => {}
    }
    let name = decode(name)
        .ok_or_else(|| RabbitMqUrlError::new("has a `%` in the virtual host that no two hexadecimal digits follow"))?;
    if name.len() > 255 {
        return Err(RabbitMqUrlError::new("has a virtual host of more than 255 bytes"));
    }
    Ok(name)
}

fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Percent-decoding; `None` when a `%` is not followed by two hexadecimal digits, or the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let (digits, tail) = tail.split_at_checked(2)?;
            let high = char::from(*digits.first()?).to_digit(16)?;
            let low = char::from(*digits.get(1)?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
            rest = tail;
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[track_caller]
    fn parsed(url: &str) -> Nodes {
        url.parse().unwrap()
    }

    #[test]
    fn everything_has_a_default() {
        let nodes = parsed("amqp://broker");
        assert_eq!(nodes.to_string(), "amqp://guest:***@broker:5672/");
        assert_eq!(nodes.uri(0).vhost, "/");
        assert_eq!(nodes.uri(0).query.heartbeat, Some(5));
        assert_eq!(nodes.connection_timeout(), Duration::from_secs(10));
        assert_eq!(parsed("amqp://broker/").uri(0).vhost, "/");
        assert_eq!(parsed("amqp://broker/%2f").uri(0).vhost, "/");
        assert_eq!(parsed("amqp://broker//").uri(0).vhost, "/");
    }

    #[test]
    fn a_cluster_with_escapes_and_parameters() {
        let nodes =
            parsed("amqp://us%65r:p%40ss%2Fw%25rd@h1:1000,[::1]:2000,h3/sh%20op?heartbeat=7&frame_max=8192&channel_max=7");
        assert_eq!(nodes.len(), 3);
        assert_eq!([nodes.name(0), nodes.name(1), nodes.name(2)], ["h1:1000", "[::1]:2000", "h3:5672"]);
        let uri = nodes.uri(1);
        assert_eq!(uri.authority.host, "::1");
        assert_eq!((uri.authority.userinfo.username.as_str(), uri.authority.userinfo.password.as_str()), ("user", "p@ss/w%rd"));
        assert_eq!(uri.vhost, "sh op");
        assert_eq!((uri.query.heartbeat, nodes.frame_max(), uri.query.channel_max), (Some(7), Some(8192), Some(7)));
        assert_eq!(parsed("amqp://h?connection_timeout=250").connection_timeout(), Duration::from_millis(250));
    }

    #[test]
    fn mistakes_are_told_without_showing_the_url() {
        for (url, problem) in [
            ("", "has no scheme"),
            ("h1:5672", "has no scheme"),
            ("http://h1", "a scheme other than"),
            ("amqp://", "has no host"),
            ("amqp:///vhost", "has no host"),
            ("amqp://s3cret@h1", "names a user but no password"),
            ("amqp://u:s3cret@", "has no host"),
            ("amqp://u:s3cret@h1,,h2", "has no host after a comma"),
            ("amqp://u:s3cret@h1:port", "port of host 1"),
            ("amqp://u:s3cret@h1:1,h2:70000", "port of host 2"),
            ("amqp://u:s3cret", "port of host 1"),
            ("amqp://u:s3cret/more@h1", "write `/` as %2F"),
            ("amqp://u:s3cret#more@h1", "`#` as %23"),
            ("amqp://u:s3cret?more@h1", "`?` as %3F"),
            ("amqp://u:s3cret%zz@h1", "`%` in the password"),
            ("amqp://u:p@[::1", "no `]`"),
            ("amqp://h1/a/b", "write it as %2F"),
            ("amqp://h1/a#b", "write it as %23"),
            ("amqp://h1/%zz", "`%` in the virtual host"),
            ("amqp://h1?hearbeat=1", "unknown parameter `hearbeat`: the known ones are `heartbeat`, `connection_timeout`"),
            ("amqp://h1?heartbeat=fast", "`heartbeat` a value that it cannot have: it is in seconds"),
            ("amqp://h1?heartbeat", "`heartbeat` a value"),
            ("amqp://h1?connection_timeout=0", "in milliseconds"),
            ("amqp://h1?frame_max=100", "at least 4096"),
            ("amqp://h1?channel_max=65536", "at most 65535"),
        ] {
            let error = url.parse::<Nodes>().unwrap_err().to_string();
            assert!(error.contains(problem), "{url}: {error}");
            assert!(error.contains("amqp://user:password@host:5672"), "{url}: {error}");
            assert!(!error.contains("s3cret"), "{url}: {error}");
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_needs_its_feature() {
        let error = "amqps://h1".parse::<Nodes>().unwrap_err().to_string();
        assert!(error.contains("enable the feature `tls`"), "{error}");
    }

    #[cfg(feature = "tls")]
    #[test]
    fn tls_has_a_port_of_its_own() {
        assert_eq!(parsed("amqps://h1").name(0), "h1:5671");
    }

    #[test]
    fn the_password_is_never_shown() {
        let nodes = parsed("amqp://user:s3cret@h1/shop");
        assert_eq!(format!("{nodes}"), "amqp://user:***@h1:5672/shop");
        assert_eq!(format!("{nodes:?}"), "amqp://user:***@h1:5672/shop");
    }
}
