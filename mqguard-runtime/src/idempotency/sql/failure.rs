//! What an error of sqlx means to who asked.

use sqlx::error::DatabaseError;

use super::super::contract::StoreError;
use super::dialect::{Dialect, Fault};
use crate::tls;

/// Whatever is not told by the server is a session that is lost.
pub(super) fn fault<D: Dialect>(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(error) => D::fault(&**error),
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => Fault::Refused,
        error if tls::refusal(error).is_some() => Fault::Refused,
        sqlx::Error::Encode(_)
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. }
        | sqlx::Error::TypeNotFound { .. }
        | sqlx::Error::InvalidArgument(_) => Fault::Row,
        _ => Fault::Lost,
    }
}

/// For who asked about no row in particular.
pub(super) fn of<D: Dialect>(error: &sqlx::Error, place: &str) -> StoreError {
    let text = match tls::refusal(error) {
        Some(refusal) => format!("{} at {place}: {refusal}", D::NAME),
        None => format!("{} at {place}: {error}", D::NAME),
    };
    match fault::<D>(error) {
        Fault::Refused => StoreError::Refused(text),
        Fault::Again | Fault::Locked | Fault::Unavailable | Fault::Lost | Fault::Row => StoreError::Unavailable(text),
    }
}

/// Whether what a server answered passes by itself.
pub(crate) fn passes(error: &(dyn DatabaseError + 'static)) -> bool {
    let faults = [
        #[cfg(feature = "postgres")]
        error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().map(|_| super::postgres::Postgres::fault(error)),
        #[cfg(feature = "mysql")]
        error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(|_| super::mysql::MySql::fault(error)),
        #[cfg(feature = "sqlite")]
        error.try_downcast_ref::<sqlx::sqlite::SqliteError>().map(|_| super::sqlite::Sqlite::fault(error)),
    ];
    faults.into_iter().flatten().any(|fault| !matches!(fault, Fault::Row | Fault::Refused))
}
