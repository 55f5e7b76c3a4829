use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::contract::{Hold, Settled, StoreError};
use crate::consumer::Failure;

/// Transactions in the database that keeps the records: what a handler writes there is committed together with the record of its
/// success, or not at all.
///
/// The claim is made before and apart, as for any other consumer, so that a concurrent duplicate is busy at once and waits for nobody's
/// lock. That the success is recorded under the claim is what lets no second run commit: its owner is not the one in the record.
#[async_trait]
pub trait Transactions: fmt::Debug + Send + Sync {
    /// Which `Tx` a handler gets.
    fn database(&self) -> Database;

    /// Begins one.
    ///
    /// # Errors
    /// There is none, and nothing has happened.
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError>;
}

/// A transaction that a handler writes in.
#[async_trait]
pub trait Transaction: Send {
    /// Where the handler's `Tx` finds it.
    fn session(&self) -> Session;

    /// Records the success of a claim, and commits it with what the handler wrote; without a claim just that.
    ///
    /// # Errors
    /// [`NotCommitted`].
    async fn complete(self: Box<Self>, hold: Option<&Hold>) -> Result<Settled, NotCommitted>;

    /// Undoes what the handler wrote.
    async fn rollback(self: Box<Self>);
}

/// The kind of a database, by the type that a handler names in its `Tx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Database {
    pub(crate) id: TypeId,
    pub(crate) name: &'static str,
}

impl Database {
    /// That of a store that is missing, which is told elsewhere.
    pub(crate) fn unknown() -> Self {
        Self::of::<()>()
    }

    /// The kind that `DB` stands for.
    #[must_use]
    pub fn of<DB: 'static>() -> Self {
        Self { id: TypeId::of::<DB>(), name: std::any::type_name::<DB>() }
    }
}

/// What a `Tx` of this database can be taken from.
#[derive(Clone)]
pub struct Session(pub Arc<dyn Any + Send + Sync>);

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// Why a transaction was not committed, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotCommitted {
    /// It was undone because of others, or of the server: the same run again may succeed.
    Undone(StoreError),
    /// The database does not accept what the handler wrote: the run has failed.
    Rejected(Failure),
    /// The answer was lost.
    Unknown(StoreError),
}
