use std::fmt;

use crate::broker::{BrokerError, PublishError};
use crate::consumer::ConsumerError;

/// What ends a guard, or keeps it from starting.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is wrong; all mistakes that were found, one a line.
    #[error("{}", list(.0))]
    Config(Vec<ConfigError>),
    /// The broker or the store refused something that trying again does not change.
    #[error("consumer `{consumer}` on queue `{queue}`: {error}")]
    Consumer {
        /// The function.
        consumer: &'static str,
        /// Its queue.
        queue: &'static str,
        /// What they said.
        error: Box<ConsumerError>,
    },
    /// The broker, while topology was declared.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// A message could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The process cannot listen for SIGINT and SIGTERM.
    #[error("cannot listen for signals: {0}")]
    Signal(#[from] std::io::Error),
}

/// The same text as [`Display`](fmt::Display): it is what a `main` that returns the error prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn list(errors: &[ConfigError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// One mistake in the configuration of a guard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(vec![error])
    }
}
