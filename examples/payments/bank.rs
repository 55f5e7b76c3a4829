//! The database: accounts, transfers, letters, and the records that mqguard keeps beside them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use mqguard::idempotency::{SqliteStore, Store};
use mqguard::sqlx::{self, Pool, QueryBuilder};

use super::audit::{Record, Snapshot, State};
use super::consumers::QUEUE;
use super::input::{ACCOUNTS, OPENING_CENTS};

pub type Problem = Box<dyn std::error::Error + Send + Sync>;

/// The database that a URL names. Clones share the sessions.
#[derive(Clone)]
pub struct Books {
    url: String,
    /// The name by which consumers ask for the store.
    store: &'static str,
    bank: Arc<dyn Bank>,
}

impl Books {
    pub fn open(url: &str) -> Result<Self, Problem> {
        let (store, bank): (_, Arc<dyn Bank>) = match url.split_once(':').map_or("", |(scheme, _)| scheme) {
            // The file and its settings are those of the store, which comes first.
            "sqlite" => ("sqlite", Arc::new(Pool::<sqlx::Sqlite>::connect_lazy(url)?)),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => ("postgres", Arc::new(Pool::<sqlx::Postgres>::connect_lazy(url)?)),
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => ("mysql", Arc::new(Pool::<sqlx::MySql>::connect_lazy(url)?)),
            // Not the URL, which may hold a password.
            _ => {
                return Err(
                    "the store is to be a database of this build: `sqlite:FILE`, `postgres://...` or `mysql://...`".into()
                );
            }
        };
        Ok(Self { url: url.to_owned(), store, bank })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn store(&self) -> &'static str {
        self.store
    }

    /// Begins anew: what an earlier run left is removed, and every account holds its opening balance.
    pub async fn begin(&self) -> Result<(), Problem> {
        self.mq_store()?.ping().await?;
        Ok(self.bank.begin().await?)
    }

    /// The store of the records, whose tables are made when it is first asked.
    fn mq_store(&self) -> Result<Arc<dyn Store>, Problem> {
        Ok(match self.store {
            #[cfg(feature = "postgres")]
            "postgres" => Arc::new(mqguard::idempotency::PostgresStore::new(&self.url)?),
            #[cfg(feature = "mysql")]
            "mysql" => Arc::new(mqguard::idempotency::MySqlStore::new(&self.url)?),
            _ => Arc::new(SqliteStore::new(&self.url)?),
        })
    }

    pub async fn keep_letter(&self, payment: i64, reason: &str) -> sqlx::Result<()> {
        self.bank.keep_letter(payment, reason).await
    }

    /// How many payments have ended: transferred, or with a letter.
    pub async fn count_ended(&self) -> sqlx::Result<usize> {
        let ended = "SELECT count(*) FROM (SELECT payment FROM transfer UNION SELECT payment FROM letter) AS ended";
        Ok(self.bank.numbers(ended).await?.first().and_then(|count| usize::try_from(*count).ok()).unwrap_or_default())
    }

    /// Whether no record says that there is still something to do.
    pub async fn is_settled(&self) -> sqlx::Result<bool> {
        Ok(self.snapshot().await?.records.values().all(|record| record.state != State::Unsettled))
    }

    /// All that is written in the books.
    pub async fn snapshot(&self) -> sqlx::Result<Snapshot> {
        let mut letters = BTreeMap::<i64, Vec<String>>::new();
        for (payment, reason) in self.bank.letters().await? {
            letters.entry(payment).or_default().push(reason);
        }
        let records = self.bank.records().await?.into_iter().filter_map(|(message_id, state, generation, step, crashes)| {
            let payment = message_id.strip_prefix("payment-")?.parse().ok()?;
            Some((payment, Record { state: State::named(&state), generation, step, crashes }))
        });
        Ok(Snapshot {
            records: records.collect(),
            letters,
            transfers: self.bank.numbers("SELECT payment FROM transfer").await?,
            balances: self.bank.numbers("SELECT cents FROM account ORDER BY id").await?,
        })
    }
}

/// The same on each database.
#[async_trait]
trait Bank: Send + Sync {
    async fn begin(&self) -> sqlx::Result<()>;
    async fn keep_letter(&self, payment: i64, reason: &str) -> sqlx::Result<()>;
    async fn numbers(&self, query: &'static str) -> sqlx::Result<Vec<i64>>;
    async fn letters(&self) -> sqlx::Result<Vec<(i64, String)>>;
    /// Of each message: its id, the state (`owed` if its letter is not out), generation, step and crashes.
    async fn records(&self) -> sqlx::Result<Vec<(String, String, i64, i64, i64)>>;
}

/// `transfer` and `letter` have no unique constraint: a double shows.
const TABLES: [&str; 6] = [
    "DROP TABLE IF EXISTS account",
    "DROP TABLE IF EXISTS transfer",
    "DROP TABLE IF EXISTS letter",
    "CREATE TABLE account (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL)",
    "CREATE TABLE transfer (payment BIGINT NOT NULL, cents BIGINT NOT NULL)",
    "CREATE TABLE letter (payment BIGINT NOT NULL, reason VARCHAR(100) NOT NULL)",
];

macro_rules! bank_on {
    ($database:ident, $message_id:literal) => {
        #[async_trait]
        impl Bank for Pool<sqlx::$database> {
            async fn begin(&self) -> sqlx::Result<()> {
                for statement in TABLES {
                    sqlx::query(statement).execute(self).await?;
                }
                let mut forget = QueryBuilder::new("DELETE FROM mq_consume_record WHERE consumer = ");
                forget.push_bind(QUEUE).build().execute(self).await?;
                let mut open = QueryBuilder::new("INSERT INTO account (id, cents) ");
                open.push_values(1..=ACCOUNTS, |mut row, account| {
                    row.push_bind(account).push_bind(OPENING_CENTS);
                });
                open.build().execute(self).await.map(drop)
            }

            async fn keep_letter(&self, payment: i64, reason: &str) -> sqlx::Result<()> {
                let mut insert = QueryBuilder::new("INSERT INTO letter (payment, reason) VALUES (");
                insert.push_bind(payment).push(", ").push_bind(reason).push(")").build().execute(self).await.map(drop)
            }

            async fn numbers(&self, query: &'static str) -> sqlx::Result<Vec<i64>> {
                sqlx::query_scalar(query).fetch_all(self).await
            }

            async fn letters(&self) -> sqlx::Result<Vec<(i64, String)>> {
                sqlx::query_as("SELECT payment, reason FROM letter").fetch_all(self).await
            }

            async fn records(&self) -> sqlx::Result<Vec<(String, String, i64, i64, i64)>> {
                let query = concat!(
                    "SELECT ",
                    $message_id,
                    ", CASE WHEN status = 'failed' AND NOT lettered THEN 'owed' ELSE status END, generation, step, crashes
                     FROM mq_consume_record WHERE consumer = 'payment.process'"
                );
                sqlx::query_as(query).fetch_all(self).await
            }
        }
    };
}

bank_on!(Sqlite, "msg_id");
#[cfg(feature = "postgres")]
bank_on!(Postgres, "msg_id");
#[cfg(feature = "mysql")]
bank_on!(MySql, "CONVERT(msg_id USING utf8mb4)");
