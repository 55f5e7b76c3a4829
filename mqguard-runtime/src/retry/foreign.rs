//! The classes of errors from other crates.

use std::error::Error;
use std::io;
use std::sync::Arc;

use super::classify::{Retry, RetryableError};

#[diagnostic::do_not_recommend]
impl<E: RetryableError + ?Sized> RetryableError for Box<E> {
    fn retry(&self) -> Retry {
        (**self).retry()
    }
}

#[diagnostic::do_not_recommend]
impl<E: RetryableError + ?Sized> RetryableError for Arc<E> {
    fn retry(&self) -> Retry {
        (**self).retry()
    }
}

#[diagnostic::do_not_recommend]
impl<E: RetryableError + ?Sized> RetryableError for &E {
    fn retry(&self) -> Retry {
        (**self).retry()
    }
}

#[diagnostic::do_not_recommend]
impl RetryableError for std::convert::Infallible {
    fn retry(&self) -> Retry {
        match *self {}
    }
}

/// Of an error without a type: as its first cause of a known type says, else retryable: an unknown failure is tried again rather than
/// given up.
fn of_dyn(error: &(dyn Error + 'static)) -> Retry {
    std::iter::successors(Some(error), |&error| error.source()).take(64).find_map(known).unwrap_or(Retry::Retryable)
}

fn known(error: &(dyn Error + 'static)) -> Option<Retry> {
    fn as_a<E: RetryableError + Error + 'static>(error: &(dyn Error + 'static)) -> Option<Retry> {
        error.downcast_ref::<E>().map(RetryableError::retry)
    }
    let known = as_a::<io::Error>(error)
        .or_else(|| as_a::<tokio::time::error::Elapsed>(error))
        .or_else(|| as_a::<serde_json::Error>(error))
        .or_else(|| as_a::<std::str::Utf8Error>(error))
        .or_else(|| as_a::<std::num::ParseIntError>(error))
        .or_else(|| as_a::<std::num::ParseFloatError>(error))
        .or_else(|| as_a::<std::fmt::Error>(error));
    #[cfg(feature = "rabbitmq")]
    let known = known.or_else(|| as_a::<lapin::Error>(error));
    #[cfg(feature = "redis")]
    let known = known.or_else(|| as_a::<redis::RedisError>(error));
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    let known = known.or_else(|| as_a::<sqlx::Error>(error));
    known
}

#[diagnostic::do_not_recommend]
impl RetryableError for dyn Error + Send + Sync + 'static {
    fn retry(&self) -> Retry {
        of_dyn(self)
    }
}

#[diagnostic::do_not_recommend]
impl RetryableError for dyn Error + Send + 'static {
    fn retry(&self) -> Retry {
        of_dyn(self)
    }
}

#[diagnostic::do_not_recommend]
impl RetryableError for dyn Error + 'static {
    fn retry(&self) -> Retry {
        of_dyn(self)
    }
}

/// What another try can change is retryable; what the input or the program causes is fatal.
#[diagnostic::do_not_recommend]
impl RetryableError for io::Error {
    fn retry(&self) -> Retry {
        use io::ErrorKind as Kind;
        match self.kind() {
            Kind::InvalidInput | Kind::InvalidData | Kind::Unsupported | Kind::InvalidFilename | Kind::ArgumentListTooLong => {
                Retry::Fatal
            }
            Kind::NotFound | Kind::PermissionDenied | Kind::AlreadyExists | Kind::IsADirectory | Kind::NotADirectory => {
                Retry::Fatal
            }
            _ => Retry::Retryable,
        }
    }
}

#[diagnostic::do_not_recommend]
impl RetryableError for tokio::time::error::Elapsed {
    fn retry(&self) -> Retry {
        Retry::Retryable
    }
}

/// Bad JSON stays bad JSON; an input stream that broke may work next time.
#[diagnostic::do_not_recommend]
impl RetryableError for serde_json::Error {
    fn retry(&self) -> Retry {
        if self.is_io() { Retry::Retryable } else { Retry::Fatal }
    }
}

macro_rules! always_fatal {
    ($($ty:ty),+ $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl RetryableError for $ty {
            fn retry(&self) -> Retry {
                Retry::Fatal
            }
        }
    )+};
}
always_fatal!(
    std::str::Utf8Error,
    std::string::FromUtf8Error,
    std::num::ParseIntError,
    std::num::ParseFloatError,
    std::fmt::Error
);

/// Connections and channels come back; a refused argument or missing queue is a mistake in the program.
#[cfg(feature = "rabbitmq")]
#[diagnostic::do_not_recommend]
impl RetryableError for lapin::Error {
    fn retry(&self) -> Retry {
        use lapin::ErrorKind as Kind;
        match self.kind() {
            Kind::ProtocolError(error) if matches!(error.get_id(), 403 | 404 | 406 | 530 | 540) => Retry::Fatal,
            Kind::SerialisationError(_) | Kind::ParsingError(_) => Retry::Fatal,
            _ => Retry::Retryable,
        }
    }
}

/// A lost connection, a busy or loading server and a moved slot pass; a wrong type, command or password does not.
#[cfg(feature = "redis")]
#[diagnostic::do_not_recommend]
impl RetryableError for redis::RedisError {
    fn retry(&self) -> Retry {
        use redis::{ErrorKind as Kind, ServerErrorKind as Server};
        match self.kind() {
            Kind::Server(Server::ResponseError | Server::NoPerm | Server::ExecAbort) => Retry::Fatal,
            Kind::AuthenticationFailed | Kind::UnexpectedReturnType | Kind::InvalidClientConfig | Kind::Client => Retry::Fatal,
            _ => Retry::Retryable,
        }
    }
}

/// A lost connection, a deadlock, a conflict and a server that is busy or starting pass; what the data or the statement causes does not.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[diagnostic::do_not_recommend]
impl RetryableError for sqlx::Error {
    fn retry(&self) -> Retry {
        use sqlx::Error as Kind;
        match self {
            Kind::Database(error) if crate::idempotency::passes(&**error) => Retry::Retryable,
            Kind::Io(_) | Kind::PoolTimedOut | Kind::PoolClosed | Kind::WorkerCrashed | Kind::Protocol(_) | Kind::BeginFailed => {
                Retry::Retryable
            }
            _ => Retry::Fatal,
        }
    }
}

#[cfg(all(test, any(feature = "mysql", feature = "postgres", feature = "sqlite")))]
mod tests {
    use super::*;

    #[test]
    fn what_sqlx_says_without_a_server() {
        let classes = [
            (sqlx::Error::Io(io::ErrorKind::ConnectionReset.into()), Retry::Retryable),
            (sqlx::Error::PoolTimedOut, Retry::Retryable),
            (sqlx::Error::WorkerCrashed, Retry::Retryable),
            (sqlx::Error::RowNotFound, Retry::Fatal),
            (sqlx::Error::ColumnNotFound("cents".into()), Retry::Fatal),
        ];
        for (error, class) in classes {
            assert_eq!(error.retry(), class, "{error}");
            let text = error.to_string();
            let boxed: Box<dyn Error + Send + Sync> = error.into();
            assert_eq!(boxed.retry(), class, "boxed: {text}");
        }
    }
}
