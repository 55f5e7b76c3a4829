use std::future::Future;

use sqlx::error::DatabaseError;

use super::super::contract::Mode;
use super::super::invalid_url::InvalidUrl;
use super::key::Key;
use super::life::Stuck;
use super::row::{Insert, Row, Update};

/// Which of the two tables.
pub(super) fn table(mode: Mode) -> &'static str {
    match mode {
        Mode::Unique => "mq_consume_record",
        Mode::StateMachine => "mq_msg_log",
    }
}

/// What the databases do differently.
pub(super) trait Dialect: Send + Sync + 'static {
    type Database: sqlx::Database<Connection = Self::Connection>;
    /// A session with the database.
    type Connection: sqlx::Connection<Database = Self::Database, Options = Self::Options> + Send;
    /// Where the database is, and how to log in.
    type Options: sqlx::ConnectOptions<Connection = Self::Connection> + Clone + Send + Sync;

    /// As attributes and errors call it.
    const NAME: &'static str;
    /// Begins a transaction that is going to write.
    const BEGIN: &'static str = "BEGIN";
    /// Takes away the mark of a transaction, which fails when it is not the one that was begun; and what a handler may have set and is
    /// in our way.
    const UNMARK: &'static str = "RELEASE SAVEPOINT mqguard";
    /// Statements that change nothing, and take the rights that claims and steps take.
    fn trial(mode: Mode) -> [&'static str; 2] {
        match mode {
            Mode::Unique => [
                "INSERT INTO mq_consume_record SELECT * FROM mq_consume_record WHERE 1 = 0",
                "UPDATE mq_consume_record SET revision = revision + 1 WHERE 1 = 0",
            ],
            Mode::StateMachine => [
                "INSERT INTO mq_msg_log SELECT * FROM mq_msg_log WHERE 1 = 0",
                "UPDATE mq_msg_log SET revision = revision + 1 WHERE 1 = 0",
            ],
        }
    }
    /// The migrations, the first of which makes version 1.
    const MIGRATIONS: &'static [&'static str];
    /// Whether what is written between [`begin`](Self::begin) and [`commit`](Self::commit) is one transaction, in which nobody else
    /// writes. Elsewhere each statement is one of its own, and locks rows. Within a process it is then taken in turns, by who came first.
    const ONE_TRANSACTION: bool = false;

    fn options(url: &str) -> Result<Self::Options, InvalidUrl>;

    /// The server and the database, without the password.
    fn shown(options: &Self::Options) -> String;

    /// Sets a session that handlers use to read committed, whatever the server has set for every session.
    fn prepare(connection: &mut Self::Connection) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Opens a session for claims and steps, which waits for locks for a short time only.
    fn connect(options: &Self::Options) -> impl Future<Output = sqlx::Result<Self::Connection>> + Send;

    /// What an error of the server means.
    fn fault(error: &dyn DatabaseError) -> Fault;

    /// Begins what is written together, where that saves something.
    fn begin(_: &mut Self::Connection) -> impl Future<Output = sqlx::Result<()>> + Send {
        async { Ok(()) }
    }

    fn commit(_: &mut Self::Connection) -> impl Future<Output = sqlx::Result<()>> + Send {
        async { Ok(()) }
    }

    /// The database may have done so by itself.
    fn rollback(_: &mut Self::Connection) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Whether to wait for the locks of others from now on (about a second), as it is at first.
    fn wait_for_locks(_: &mut Self::Connection, _wait: bool) -> impl Future<Output = sqlx::Result<()>> + Send {
        async { Ok(()) }
    }

    /// The rows of these keys, as committed.
    fn read(
        connection: &mut Self::Connection,
        mode: Mode,
        keys: &[&Key],
    ) -> impl Future<Output = sqlx::Result<Vec<Option<Row>>>> + Send;

    /// Which rows were inserted: not those whose key was there. Where that cannot be told, none of them.
    fn insert(
        connection: &mut Self::Connection,
        mode: Mode,
        rows: &[Insert],
    ) -> impl Future<Output = sqlx::Result<Vec<bool>>> + Send;

    /// Which rows were changed: those that were as expected. Where that cannot be told, none of them.
    fn update(
        connection: &mut Self::Connection,
        mode: Mode,
        rows: &[Update],
    ) -> impl Future<Output = sqlx::Result<Vec<bool>>> + Send;

    /// What an operator should know: settings by which the server forgets what it has answered.
    fn warnings(connection: &mut Self::Connection) -> impl Future<Output = sqlx::Result<Vec<String>>> + Send;

    /// Deletes records that have ended and are past their time, so many at most; how many there were.
    fn purge(connection: &mut Self::Connection, mode: Mode, at_most: u32) -> impl Future<Output = sqlx::Result<u64>> + Send;

    /// Records that should have gone on by now, the oldest first.
    fn stuck(
        connection: &mut Self::Connection,
        mode: Mode,
        at_most: u32,
    ) -> impl Future<Output = sqlx::Result<Vec<Stuck>>> + Send;

    /// Runs what makes the next version, unless another process has; one process at a time.
    fn migrate(connection: &mut Self::Connection) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Runs the statements of a migration.
    fn script(connection: &mut Self::Connection, sql: &'static str) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// The version of the schema; 0 when there is none.
    fn version(connection: &mut Self::Connection) -> impl Future<Output = sqlx::Result<i64>> + Send;
}

/// What an error of the server means to who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A deadlock or a conflict with somebody who was faster: the same again.
    #[cfg_attr(not(any(feature = "mysql", feature = "postgres")), expect(dead_code, reason = "SQLite has one writer at a time"))]
    Again,
    /// Somebody else has locked a row, or the database, for longer than we wait.
    Locked,
    /// Passes by itself or with an operator's help.
    Unavailable,
    /// The session is of no use any more, as when its server has become a replica.
    Lost,
    /// Trying again does not help: permission, password, missing table.
    Refused,
    /// Something is wrong with one of the rows.
    Row,
}

impl Fault {
    /// Whether the next statement finds the session as this one did.
    pub(super) fn leaves_the_session_usable(self) -> bool {
        matches!(self, Self::Again | Self::Locked | Self::Row)
    }
}
