//! Transactions that a handler writes in.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::pool::{Pool, PoolOptions};
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::super::contract::{Hold, Settled, StoreError};
use super::super::transaction::{self, Database, NotCommitted, Transaction, Transactions};
use super::dialect::{Dialect, Fault};
use super::exchange;
use super::failure::{self, fault};
use super::link::Place;
use super::session::Session;
use crate::consumer::{Context, Extract, Failure, MissingState, States};
use crate::retry::{Retry, RetryableError};

/// How long opening a session may take. That all are in use is waited for before, for as long as it takes.
const OPEN: Duration = Duration::from_secs(5);
/// How long a commit may take.
const END: Duration = Duration::from_secs(10);

/// The transaction of this run: what is written in it is committed if the handler returns `Ok`, together with the record that the message
/// was processed, and is undone otherwise. For consumers with `idempotent(..., transactional)`.
///
/// It dereferences to the connection of sqlx: `sqlx::query("...").execute(&mut *tx)`. The isolation level is read committed (on SQLite
/// there is one writer at a time anyway): lock what you read and rely on, with `FOR UPDATE`. The handler neither commits nor rolls back.
pub struct Tx<'a, DB: sqlx::Database> {
    session: OwnedMappedMutexGuard<Option<Session<DB>>, DB::Connection>,
    /// It does not outlive the run.
    run: PhantomData<&'a mut ()>,
}

impl<DB: sqlx::Database> Deref for Tx<'_, DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.session
    }
}

impl<DB: sqlx::Database> DerefMut for Tx<'_, DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.session
    }
}

impl<DB: sqlx::Database> fmt::Debug for Tx<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tx<{}>", DB::NAME)
    }
}

impl<DB: sqlx::Database> Extract for Tx<'_, DB> {
    async fn extract(cx: &Context) -> Result<Self, Failure> {
        let failed = |why: &str| Failure::new(Retry::Fatal, "transaction", why);
        let session = cx.session().ok_or_else(|| failed("the consumer is not `transactional`"))?;
        let slot: Arc<Slot<DB>> =
            session.0.downcast().map_err(|_| failed("the store is another database than this `Tx` is for"))?;
        let locked = slot.try_lock_owned().map_err(|_| failed("the transaction is in use: take one `Tx` at a time"))?;
        let session = OwnedMutexGuard::try_map(locked, |slot| slot.as_mut()?.connection().ok());
        let session = session.map_err(|_| failed("the transaction has ended"))?;
        Ok(Self { session, run: PhantomData })
    }

    fn check(states: &States) -> Result<(), MissingState> {
        let asked = Database::of::<DB>();
        match states.database() {
            Some(database) if database == asked || database == Database::unknown() => Ok(()),
            Some(other) => Err(MissingState::Other(format!(
                "it takes a `Tx` of `{}`, but its store is a `{}`: name that in the `Tx`, or the other store",
                asked.name, other.name
            ))),
            None => Err(MissingState::Other(
                "it takes a `Tx`, but is not `transactional`: write `idempotent(store = \"...\", transactional)`".into(),
            )),
        }
    }
}

type Slot<DB> = Mutex<Option<Session<DB>>>;

/// The sessions of a store for its handlers.
pub(super) struct SqlTransactions<D: Dialect> {
    place: Place<D>,
    sessions: u32,
    /// One for each session.
    permits: Arc<Semaphore>,
    /// Made when it is first needed: that takes a runtime.
    pool: OnceLock<Pool<D::Database>>,
}

impl<D: Dialect> SqlTransactions<D> {
    pub(super) fn new(place: Place<D>, sessions: u32) -> Self {
        let permits = Arc::new(Semaphore::new(usize::try_from(sessions).unwrap_or(Semaphore::MAX_PERMITS)));
        Self { place, sessions, permits, pool: OnceLock::new() }
    }

    fn pool(&self) -> &Pool<D::Database> {
        self.pool.get_or_init(|| {
            PoolOptions::new()
                .max_connections(self.sessions)
                .acquire_timeout(OPEN)
                // That a session is lost is found out by beginning in it, which is tried again.
                .test_before_acquire(false)
                .after_connect(|connection, _| Box::pin(D::prepare(connection)))
                .connect_lazy_with(self.place.options.clone())
        })
    }

    async fn session(&self) -> sqlx::Result<Session<D::Database>> {
        let mut tries = self.sessions.saturating_add(1);
        loop {
            match Session::begin::<D>(self.pool()).await {
                Err(error) if tries > 0 && fault::<D>(&error) == Fault::Lost && !matches!(error, sqlx::Error::PoolTimedOut) => {
                    tries -= 1;
                }
                begun => return begun,
            }
        }
    }
}

impl<D: Dialect> fmt::Debug for SqlTransactions<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlTransactions").field("server", &self.place.shown()).finish_non_exhaustive()
    }
}

#[async_trait]
impl<D: Dialect> Transactions for SqlTransactions<D> {
    fn database(&self) -> Database {
        Database::of::<D::Database>()
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        // Never closed, it always gives one.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        let turn = self.place.turn().await;
        let session = self.session().await.map_err(|error| failure::of::<D>(&error, &self.place.shown()))?;
        let slot = Arc::new(Mutex::new(Some(session)));
        Ok(Box::new(SqlTransaction::<D> { slot, place: self.place.clone(), held: [permit, turn] }))
    }
}

struct SqlTransaction<D: Dialect> {
    slot: Arc<Slot<D::Database>>,
    place: Place<D>,
    /// The right to a session, and to write where one does at a time. Given back after the transaction has ended.
    #[expect(dead_code, reason = "held")]
    held: [Option<OwnedSemaphorePermit>; 2],
}

impl<D: Dialect> SqlTransaction<D> {
    /// `None` while the handler's `Tx` lives, which somebody must have kept.
    fn take(&self) -> Option<Session<D::Database>> {
        self.slot.try_lock().ok()?.take()
    }

    /// Makes the success part of the transaction, if that is still the one that was begun; whether the claim is still there.
    async fn record(&self, session: &mut Session<D::Database>, hold: Option<&Hold>) -> Result<bool, NotCommitted> {
        let connection = session.connection().map_err(|error| self.undone(&error))?;
        if let Err(error) = D::script(connection, D::UNMARK).await {
            let is_marked = matches!(fault::<D>(&error), Fault::Lost | Fault::Again) || is_aborted(&error);
            return Err(if is_marked { self.undone(&error) } else { NotCommitted::Rejected(ended(&error)) });
        }
        let Some(hold) = hold else { return Ok(true) };
        let recorded = D::update(connection, self.place.mode, &[exchange::completion(hold)]).await;
        recorded.map(|done| done == [true]).map_err(|error| self.undone(&error))
    }

    fn undone(&self, error: &sqlx::Error) -> NotCommitted {
        match fault::<D>(error) {
            Fault::Again | Fault::Locked | Fault::Unavailable | Fault::Lost => {
                NotCommitted::Undone(failure::of::<D>(error, &self.place.shown()))
            }
            Fault::Refused | Fault::Row => NotCommitted::Rejected(rejected(error)),
        }
    }
}

#[async_trait]
impl<D: Dialect> Transaction for SqlTransaction<D> {
    fn session(&self) -> transaction::Session {
        transaction::Session(Arc::clone(&self.slot) as _)
    }

    async fn complete(self: Box<Self>, hold: Option<&Hold>) -> Result<Settled, NotCommitted> {
        let Some(mut session) = self.take() else {
            let why = "the handler has returned, but its `Tx` is still in use: nothing is committed";
            return Err(NotCommitted::Rejected(Failure::new(Retry::Fatal, "transaction", why)));
        };
        match self.record(&mut session, hold).await {
            Ok(true) => {}
            Ok(false) => {
                session.undo().await;
                return Ok(Settled::Refused);
            }
            Err(why) => {
                session.undo().await;
                return Err(why);
            }
        }
        let place = self.place.shown();
        match timeout(END, session.commit()).await {
            Ok(Ok(())) => Ok(Settled::Applied),
            // What the server itself answers is an answer: a constraint that is checked at the end, a conflict.
            Ok(Err(error @ sqlx::Error::Database(_))) if fault::<D>(&error) != Fault::Lost => Err(self.undone(&error)),
            Ok(Err(error)) => Err(NotCommitted::Unknown(failure::of::<D>(&error, &place))),
            Err(_) => Err(NotCommitted::Unknown(StoreError::Unavailable(format!(
                "{} at {place}: the commit was not answered",
                D::NAME
            )))),
        }
    }

    async fn rollback(self: Box<Self>) {
        match self.take() {
            Some(session) => session.undo().await,
            None => tracing::error!("a `Tx` outlives its run: its transaction is undone when it is dropped"),
        }
    }
}

/// PostgreSQL takes nothing more in a transaction in which a statement has failed, and undoes it at the commit, in silence.
fn is_aborted(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "25P02")
}

fn ended(error: &sqlx::Error) -> Failure {
    let why = "the handler returned `Ok`, but the transaction that it was given had ended before: by a `COMMIT` or `ROLLBACK`, by a \
               statement that commits (as `CREATE TABLE` does in MySQL), or by the server after an error, as a deadlock, that was not returned";
    Failure::new(Retry::Fatal, "transaction", format!("{why} ({error})"))
}

fn rejected(error: &sqlx::Error) -> Failure {
    if is_aborted(error) {
        let why = "the handler returned `Ok`, but a statement of its transaction had failed: return the error of that instead";
        return Failure::new(Retry::Fatal, "transaction", why);
    }
    Failure::new(error.retry(), "sqlx::Error", error.to_string())
}
