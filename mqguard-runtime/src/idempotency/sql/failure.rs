//! What an error of sqlx means to who asked.

use super::super::contract::StoreError;
use super::dialect::{Dialect, Fault};

/// Whatever is not told by the server is a session that is lost.
pub(super) fn fault<D: Dialect>(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(error) => D::fault(&**error),
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => Fault::Refused,
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
    let text = format!("{} at {place}: {error}", D::NAME);
    match fault::<D>(error) {
        Fault::Refused => StoreError::Refused(text),
        Fault::Again | Fault::Locked | Fault::Unavailable | Fault::Lost | Fault::Row => StoreError::Unavailable(text),
    }
}
