use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Connection as _;
use tokio::time::timeout;

use super::super::batch::Batcher;
use super::super::contract::{Claim, ClaimRequest, Hold, Mode, Settled, Step, Store, StoreError};
use super::super::identity::Identity;
use super::super::invalid_url::InvalidUrl;
use super::super::transaction::Transactions;
use super::dialect::Dialect;
use super::exchange::{Answer, Call};
use super::failure;
use super::key::Key;
use super::life::{self, Stuck};
use super::link::{Link, Place};
use super::row::Insert;
use super::transaction::SqlTransactions;

/// How many sessions handlers have, unless it is said otherwise.
const SESSIONS: u32 = 16;
/// How long listings may take.
const LISTING: Duration = Duration::from_secs(60);
/// How long the end of a session may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// A store of any dialect.
struct SqlStore<D: Dialect> {
    place: Place<D>,
    sessions: u32,
    batcher: Batcher<Link<D>>,
    transactions: OnceLock<Arc<SqlTransactions<D>>>,
}

impl<D: Dialect> SqlStore<D> {
    fn new(place: Place<D>, sessions: u32) -> Self {
        let of_link = place.clone();
        let batcher = Batcher::new(move || Link::new(of_link.clone()));
        Self { place, sessions, batcher, transactions: OnceLock::new() }
    }

    fn with(&self, change: impl FnOnce(&mut Place<D>)) -> Self {
        let mut place = self.place.clone();
        change(&mut place);
        Self::new(place, self.sessions)
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        let connection = self.with(|place| place.auto_migrate = true).place.connect().await?;
        close::<D>(connection).await;
        Ok(())
    }

    async fn stuck(&self, at_most: u32) -> Result<Vec<Stuck>, StoreError> {
        let mut connection = self.place.connect().await?;
        let stuck = self.in_time(D::stuck(&mut connection, self.place.mode, at_most)).await?;
        close::<D>(connection).await;
        Ok(stuck)
    }

    /// On a session of its own, so that claims do not wait for it.
    async fn purge(&self) -> Result<u64, StoreError> {
        let mut connection = self.place.connect().await?;
        let purged = life::purge::<D>(&mut connection, self.place.mode).await.map_err(|error| self.about(&error))?;
        close::<D>(connection).await;
        Ok(purged)
    }

    async fn warnings(&self) -> Result<Vec<String>, StoreError> {
        let mut connection = self.place.connect().await?;
        let warnings = self.in_time(D::warnings(&mut connection)).await?;
        close::<D>(connection).await;
        Ok(warnings)
    }

    async fn in_time<T>(&self, answer: impl Future<Output = sqlx::Result<T>>) -> Result<T, StoreError> {
        let late = |_| StoreError::Unavailable(format!("{} at {}: no answer", D::NAME, self.place.shown()));
        timeout(LISTING, answer).await.map_err(late)?.map_err(|error| self.about(&error))
    }

    fn about(&self, error: &sqlx::Error) -> StoreError {
        failure::of::<D>(error, &self.place.shown())
    }

    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("server", &format_args!("{}", self.place.shown()))
            .field("mode", &self.place.mode)
            .finish_non_exhaustive()
    }
}

/// Says goodbye, so that the server's log has no complaint; that it is not answered does not matter.
async fn close<D: Dialect>(connection: D::Connection) {
    let _ = timeout(GOODBYE, connection.close()).await;
}

async fn register<D: Dialect>(connection: &mut D::Connection, identity: &Identity, horizon: Duration) -> sqlx::Result<bool> {
    let row = Insert::pending(Key::of(identity), horizon);
    if is_done(&D::insert(connection, Mode::StateMachine, std::slice::from_ref(&row)).await?) {
        return Ok(true);
    }
    let rows = D::read(connection, Mode::StateMachine, &[&row.key]).await?;
    match rows.into_iter().flatten().find_map(|old| row.in_place_of(&old)) {
        Some(update) => D::update(connection, Mode::StateMachine, &[update]).await.map(|changed| is_done(&changed)),
        None => Ok(false),
    }
}

fn is_done(changed: &[bool]) -> bool {
    changed == [true]
}

fn unexpected(answer: &Answer) -> StoreError {
    StoreError::Unavailable(format!("an answer to another question: {answer:?}"))
}

#[async_trait]
impl<D: Dialect> Store for SqlStore<D> {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        match self.batcher.ask(Call::Claim(request.clone())).await? {
            Answer::Claim(claim) => Ok(claim),
            other => Err(unexpected(&other)),
        }
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        match self.batcher.ask(Call::Settle(hold.clone(), step.clone())).await? {
            Answer::Settled(settled) => Ok(settled),
            other => Err(unexpected(&other)),
        }
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.batcher.ask(Call::Ping).await.map(drop)
    }

    async fn warnings(&self) -> Result<Vec<String>, StoreError> {
        self.warnings().await
    }

    fn needs_purging(&self) -> bool {
        true
    }

    async fn purge(&self) -> Result<u64, StoreError> {
        self.purge().await
    }

    fn transactions(&self) -> Option<Arc<dyn Transactions>> {
        let made = || Arc::new(SqlTransactions::new(self.place.clone(), self.sessions));
        Some(Arc::clone(self.transactions.get_or_init(made)) as _)
    }

    fn state_machine(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.with(|place| place.mode = Mode::StateMachine)))
    }
}

impl<D: Dialect> fmt::Debug for SqlStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.debug("SqlStore", f)
    }
}

macro_rules! sql_store {
    ($(#[$doc:meta])* $name:ident, $dialect:ty, $connection:ty) => {
        $(#[$doc])*
        pub struct $name(SqlStore<$dialect>);

        impl $name {
            /// A store in the database that a URL names. Connects when it is first used; makes its tables then, unless they are there.
            ///
            /// # Errors
            /// [`InvalidUrl`].
            pub fn new(url: &str) -> Result<Self, InvalidUrl> {
                let options = <$dialect>::options(url)?;
                Ok(Self(SqlStore::new(Place::new(options), SESSIONS)))
            }

            /// Whether missing tables are made at the first use (they are, unless this is told otherwise). If not, it is an error that
            /// they are missing or of an older version; see [`migrate`](Self::migrate).
            #[must_use]
            pub fn auto_migrate(self, may: bool) -> Self {
                Self(self.0.with(|place| place.auto_migrate = may))
            }

            /// How many transactions of handlers there can be at once (16, unless this says otherwise); further ones wait. For consumers
            /// with `transactional`.
            #[must_use]
            pub fn sessions(self, at_most: u32) -> Self {
                Self(SqlStore::new(self.0.place.clone(), at_most.max(1)))
            }

            /// Makes the tables, or brings them up to date. Several processes may do so at once.
            ///
            /// # Errors
            /// [`StoreError::Refused`] when the user may not, or the tables were made by a newer version of mqguard.
            pub async fn migrate(&self) -> Result<(), StoreError> {
                self.0.migrate().await
            }

            /// Messages that should have gone on by now, those that have not changed for the longest first.
            ///
            /// # Errors
            /// When the database cannot be asked.
            pub async fn stuck(&self, mode: Mode, at_most: u32) -> Result<Vec<Stuck>, StoreError> {
                self.0.with(|place| place.mode = mode).stuck(at_most).await
            }

            /// Notes in the log of the state machine, in the producer's own transaction, that a message is about to be published: it is
            /// `pending` from the commit on. Once it should have been processed (`horizon` from now) and was not, it is listed as
            /// [`stuck`](Self::stuck). Publish after the commit, with the same message id.
            ///
            /// Returns whether it was new: `false` means that it was registered, or delivered, before, and is not forgotten.
            ///
            /// # Errors
            /// Whatever the database answers; the transaction should be rolled back then.
            pub async fn register(connection: &mut $connection, identity: &Identity, horizon: Duration) -> sqlx::Result<bool> {
                register::<$dialect>(connection, identity, horizon).await
            }
        }

        /// Shows the address, never the password.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.debug(stringify!($name), f)
            }
        }

        #[async_trait]
        impl Store for $name {
            async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
                self.0.claim(request).await
            }

            async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
                self.0.settle(hold, step).await
            }

            async fn ping(&self) -> Result<(), StoreError> {
                self.0.ping().await
            }

            async fn warnings(&self) -> Result<Vec<String>, StoreError> {
                self.0.warnings().await
            }

            fn needs_purging(&self) -> bool {
                true
            }

            async fn purge(&self) -> Result<u64, StoreError> {
                self.0.purge().await
            }

            fn transactions(&self) -> Option<Arc<dyn Transactions>> {
                self.0.transactions()
            }

            fn state_machine(&self) -> Option<Arc<dyn Store>> {
                self.0.state_machine()
            }
        }
    };
}

#[cfg(feature = "postgres")]
sql_store! {
    /// Keeps the records in a PostgreSQL database (9.5 or later): `postgres://user:password@host:5432/database[?sslmode=require]`.
    PostgresStore, super::postgres::Postgres, sqlx::PgConnection
}

#[cfg(feature = "mysql")]
sql_store! {
    /// Keeps the records in a MariaDB (10.3 or later) or MySQL (8.0 or later) database:
    /// `mysql://user:password@host:3306/database[?ssl-mode=REQUIRED]`.
    MySqlStore, super::mysql::MySql, sqlx::MySqlConnection
}

#[cfg(feature = "sqlite")]
sql_store! {
    /// Keeps the records in an SQLite file, which is made when it is missing: `sqlite:records.db`. Its clock is that of the machine, and
    /// one process writes at a time: for one machine, and for tests.
    SqliteStore, super::sqlite::Sqlite, sqlx::SqliteConnection
}
