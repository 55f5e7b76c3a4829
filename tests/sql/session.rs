//! Plain sessions with a database, as an operator or a producer has them.

use std::str::FromStr as _;
use std::time::Duration;

use mqguard::idempotency::{Identity, MySqlStore, PostgresStore, SqliteStore};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, MySqlConnection, PgConnection, Row as _, SqliteConnection};

use crate::database::Kind;

#[derive(Debug)]
pub(crate) enum Session {
    MariaDb(MySqlConnection),
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

macro_rules! each {
    ($session:expr, $connection:ident => $body:expr) => {
        match $session {
            Session::MariaDb($connection) => $body,
            Session::Postgres($connection) => $body,
            Session::Sqlite($connection) => $body,
        }
    };
}

impl Session {
    pub(crate) async fn open(kind: Kind, url: &str) -> Self {
        match kind {
            Kind::MariaDb => {
                let options = MySqlConnectOptions::from_str(url).expect("a URL");
                let mut connection = options.connect().await.expect("MariaDB");
                // Whatever a test has set for all sessions.
                sqlx::raw_sql("SET autocommit = 1, sql_mode = 'STRICT_ALL_TABLES'").execute(&mut connection).await.expect("set");
                Self::MariaDb(connection)
            }
            Kind::Postgres => {
                Self::Postgres(PgConnectOptions::from_str(url).expect("a URL").connect().await.expect("PostgreSQL"))
            }
            Kind::Sqlite => {
                let options = SqliteConnectOptions::from_str(url).expect("a URL").create_if_missing(true);
                Self::Sqlite(options.busy_timeout(Duration::from_secs(20)).connect().await.expect("SQLite"))
            }
        }
    }

    /// Runs statements; how many rows they changed.
    pub(crate) async fn run(&mut self, sql: &str) -> sqlx::Result<u64> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        each!(self, connection => sql.execute(connection).await.map(|done| done.rows_affected()))
    }

    pub(crate) async fn must(&mut self, sql: &str) -> u64 {
        self.run(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The first column of each row.
    pub(crate) async fn numbers(&mut self, sql: &str) -> Vec<i64> {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        each!(self, connection => {
            let rows = query.fetch_all(connection).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            rows.iter().map(|row| row.try_get(0).unwrap_or_else(|error| panic!("{sql}: {error}"))).collect()
        })
    }

    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        *self.numbers(sql).await.first().unwrap_or_else(|| panic!("{sql}: no row"))
    }

    /// The columns of the only row.
    pub(crate) async fn texts(&mut self, columns: usize, sql: &str) -> Vec<Option<String>> {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        each!(self, connection => {
            let row = query.fetch_one(connection).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            (0..columns).map(|nth| row.try_get(nth).unwrap_or_else(|error| panic!("{sql}: {error}"))).collect()
        })
    }

    /// As a producer does it.
    pub(crate) async fn register(&mut self, identity: &Identity, horizon: Duration) -> sqlx::Result<bool> {
        match self {
            Self::MariaDb(connection) => MySqlStore::register(connection, identity, horizon).await,
            Self::Postgres(connection) => PostgresStore::register(connection, identity, horizon).await,
            Self::Sqlite(connection) => SqliteStore::register(connection, identity, horizon).await,
        }
    }
}
