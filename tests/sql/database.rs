//! A database for one test, and the stores in it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mqguard::idempotency::{
    ClaimRequest, InvalidUrl, Mode, MySqlStore, Owner, PostgresStore, SqliteStore, Store, StoreError, Stuck,
};
use tempfile::TempDir;

use crate::session::Session;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    MariaDb,
    Postgres,
    Sqlite,
}

impl Kind {
    /// A time relative to now.
    pub(crate) fn time(self, seconds: i64) -> String {
        match self {
            Self::MariaDb => format!("(UTC_TIMESTAMP(6) + INTERVAL {seconds} SECOND)"),
            Self::Postgres => format!("(clock_timestamp() + interval '1 second' * {seconds})"),
            Self::Sqlite => format!("(CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER) + {seconds} * 1000000)"),
        }
    }

    /// The seconds from now to the time in a column.
    pub(crate) fn seconds_to(self, column: &str) -> String {
        match self {
            Self::MariaDb => format!("TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), {column})"),
            Self::Postgres => format!("extract(epoch FROM {column} - clock_timestamp())::bigint"),
            Self::Sqlite => format!("({column} - CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)) / 1000000"),
        }
    }

    fn text(self, expression: &str) -> String {
        match self {
            Self::MariaDb => format!("CONVERT(CAST({expression} AS CHAR) USING utf8mb4)"),
            Self::Postgres | Self::Sqlite => format!("CAST({expression} AS text)"),
        }
    }

    /// The server's URL without user and database.
    fn host(self) -> (&'static str, String, String) {
        let (scheme, variable) = match self {
            Self::MariaDb => ("mysql", "MQGUARD_TEST_MARIADB"),
            Self::Postgres => ("postgres", "MQGUARD_TEST_POSTGRES"),
            Self::Sqlite => panic!("it has no server"),
        };
        let url = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is set: `cargo xtask test` does so"));
        let rest = url.rsplit_once('@').expect("user@host").1;
        let (host, database) = rest.split_once('/').expect("host/database");
        (scheme, host.to_owned(), database.to_owned())
    }

    pub(crate) fn url(self, user: &str, password: &str, database: &str) -> String {
        let (scheme, host, _) = self.host();
        format!("{scheme}://{user}:{password}@{host}/{database}")
    }

    /// A session of who may do everything.
    pub(crate) async fn admin(self) -> Session {
        let database = self.host().2;
        Session::open(self, &self.url("mqguard", "mqguard", &database)).await
    }
}

pub(crate) fn table(mode: Mode) -> &'static str {
    match mode {
        Mode::Unique => "mq_consume_record",
        Mode::StateMachine => "mq_msg_log",
    }
}

/// An empty database, dropped with this.
pub(crate) struct Lab {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    users: Mutex<Vec<String>>,
    directory: Option<TempDir>,
}

impl Lab {
    pub(crate) async fn new(kind: Kind) -> Self {
        let name = format!("mqg_{}", &Owner::random().to_string()[..16]);
        let directory = (kind == Kind::Sqlite).then(|| tempfile::tempdir().expect("a directory"));
        let lab = Self { kind, name, users: Mutex::default(), directory };
        if kind != Kind::Sqlite {
            kind.admin().await.must(&format!("CREATE DATABASE {}", lab.name)).await;
        }
        lab
    }

    pub(crate) fn url(&self) -> String {
        match &self.directory {
            Some(directory) => format!("sqlite:{}", directory.path().join("records.db").display()),
            None => self.url_of("mqguard"),
        }
    }

    pub(crate) fn url_of(&self, user: &str) -> String {
        self.kind.url(user, "mqguard", &self.name)
    }

    pub(crate) fn records(&self) -> Records {
        Records::new(self.kind, &self.url()).expect("a usable URL")
    }

    /// One with a session of its own.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.records())
    }

    pub(crate) fn store_in(&self, mode: Mode) -> Arc<dyn Store> {
        in_mode(self.store(), mode)
    }

    /// A store that is connected, with tables.
    pub(crate) async fn ready(&self) -> Arc<dyn Store> {
        let store = self.store();
        store.ping().await.expect("it can be used");
        store
    }

    pub(crate) async fn session(&self) -> Session {
        Session::open(self.kind, &self.url()).await
    }

    /// A new user without any rights; its name.
    pub(crate) async fn user(&self) -> String {
        let user = format!("u_{}", &Owner::random().to_string()[..16]);
        let create = match self.kind {
            Kind::MariaDb => format!("CREATE USER {user}@localhost IDENTIFIED BY 'mqguard'"),
            Kind::Postgres => format!("CREATE ROLE {user} LOGIN PASSWORD 'mqguard'"),
            Kind::Sqlite => panic!("it has no users"),
        };
        self.session().await.must(&create).await;
        self.users.lock().unwrap_or_else(PoisonError::into_inner).push(user.clone());
        user
    }

    /// How a right on a table, or on the whole database, is granted.
    pub(crate) async fn grant(&self, rights: &str, table: Option<&str>, user: &str) {
        let what = match (self.kind, table) {
            (Kind::MariaDb, Some(table)) => format!("{}.{table} TO {user}@localhost", self.name),
            (Kind::MariaDb, None) => format!("{}.* TO {user}@localhost", self.name),
            (_, Some(table)) => format!("TABLE {table} TO {user}"),
            (_, None) => format!("DATABASE {} TO {user}", self.name),
        };
        self.session().await.must(&format!("GRANT {rights} ON {what}")).await;
    }

    /// What the row of a message says.
    pub(crate) async fn look(&self, session: &mut Session, mode: Mode, message: &ClaimRequest) -> Stored {
        let columns = ["status", "generation", "step", "owner", "crashes", "body", "last_error", "lettered", "revision"];
        let times = ["lease_until", "kept_until"].map(|column| self.kind.seconds_to(column));
        let all: Vec<_> =
            columns.into_iter().chain(times.iter().map(String::as_str)).map(|column| self.kind.text(column)).collect();
        let sql = format!(
            "SELECT {} FROM {} WHERE business_key = '{}' AND msg_id = '{}'",
            all.join(", "),
            table(mode),
            message.identity.business_key(),
            message.identity.message_id()
        );
        let texts = session.texts(all.len(), &sql).await;
        let number = |nth: usize| texts[nth].as_ref().map(|text| text.parse::<i64>().expect("a number"));
        let is_lettered = texts[7].as_deref().is_some_and(|text| text == "1" || text == "true");
        Stored {
            status: texts[0].clone().unwrap_or_default(),
            turn: (number(1), number(2)),
            owner: texts[3].clone(),
            crashes: number(4).unwrap_or(-1),
            body: number(5),
            last_error: texts[6].clone(),
            is_lettered,
            lease: number(9),
            kept: number(10).unwrap_or(-1),
        }
    }
}

/// A row; times in seconds from now.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) status: String,
    pub(crate) turn: (Option<i64>, Option<i64>),
    pub(crate) owner: Option<String>,
    pub(crate) crashes: i64,
    pub(crate) body: Option<i64>,
    pub(crate) last_error: Option<String>,
    pub(crate) is_lettered: bool,
    pub(crate) lease: Option<i64>,
    pub(crate) kept: i64,
}

pub(crate) fn in_mode(store: Arc<dyn Store>, mode: Mode) -> Arc<dyn Store> {
    match mode {
        Mode::Unique => store,
        Mode::StateMachine => store.state_machine().expect("it has one"),
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.kind == Kind::Sqlite {
            return;
        }
        let (kind, name) = (self.kind, self.name.clone());
        let users = std::mem::take(&mut *self.users.lock().unwrap_or_else(PoisonError::into_inner));
        // A runtime cannot wait inside another one.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), drop_all(kind, &name, &users)).await.ok() });
        });
        dropping.join().ok();
    }
}

async fn drop_all(kind: Kind, name: &str, users: &[String]) {
    let mut admin = kind.admin().await;
    if kind == Kind::MariaDb {
        let sessions = format!("SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE db = '{name}'");
        for id in admin.numbers(&sessions).await {
            admin.run(&format!("KILL {id}")).await.ok();
        }
    }
    let force = if kind == Kind::Postgres { " WITH (FORCE)" } else { "" };
    admin.run(&format!("DROP DATABASE {name}{force}")).await.ok();
    for user in users {
        let host = if kind == Kind::MariaDb { "@localhost" } else { "" };
        admin.run(&format!("DROP USER {user}{host}")).await.ok();
    }
}

/// A store of any kind.
#[derive(Debug)]
pub(crate) enum Records {
    MariaDb(MySqlStore),
    Postgres(PostgresStore),
    Sqlite(SqliteStore),
}

macro_rules! each {
    ($records:expr, $store:ident => $body:expr) => {
        match $records {
            Records::MariaDb($store) => $body,
            Records::Postgres($store) => $body,
            Records::Sqlite($store) => $body,
        }
    };
}

impl Records {
    pub(crate) fn new(kind: Kind, url: &str) -> Result<Self, InvalidUrl> {
        Ok(match kind {
            Kind::MariaDb => Self::MariaDb(MySqlStore::new(url)?),
            Kind::Postgres => Self::Postgres(PostgresStore::new(url)?),
            Kind::Sqlite => Self::Sqlite(SqliteStore::new(url)?),
        })
    }

    pub(crate) fn auto_migrate(self, may: bool) -> Self {
        match self {
            Self::MariaDb(store) => Self::MariaDb(store.auto_migrate(may)),
            Self::Postgres(store) => Self::Postgres(store.auto_migrate(may)),
            Self::Sqlite(store) => Self::Sqlite(store.auto_migrate(may)),
        }
    }

    pub(crate) async fn migrate(&self) -> Result<(), StoreError> {
        each!(self, store => store.migrate().await)
    }

    pub(crate) async fn stuck(&self, mode: Mode, at_most: u32) -> Result<Vec<Stuck>, StoreError> {
        each!(self, store => store.stuck(mode, at_most).await)
    }
}

#[async_trait::async_trait]
impl Store for Records {
    async fn claim(&self, request: &ClaimRequest) -> Result<mqguard::idempotency::Claim, StoreError> {
        each!(self, store => store.claim(request).await)
    }

    async fn settle(
        &self,
        hold: &mqguard::idempotency::Hold,
        step: &mqguard::idempotency::Step,
    ) -> Result<mqguard::idempotency::Settled, StoreError> {
        each!(self, store => store.settle(hold, step).await)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        each!(self, store => store.ping().await)
    }

    async fn warnings(&self) -> Result<Vec<String>, StoreError> {
        each!(self, store => store.warnings().await)
    }

    async fn purge(&self) -> Result<u64, StoreError> {
        each!(self, store => store.purge().await)
    }

    fn state_machine(&self) -> Option<Arc<dyn Store>> {
        each!(self, store => store.state_machine())
    }
}
