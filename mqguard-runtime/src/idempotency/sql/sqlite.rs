//! SQLite (the one that is compiled in).

use std::future::Future;
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, SqliteConnection};
use tokio::time::sleep;

use super::super::contract::Mode;
use super::super::invalid_url::InvalidUrl;
use super::dialect::{Dialect, Fault, table};
use super::failure::fault;
use super::key::Key;
use super::life::Stuck;
use super::row::{Insert, Row, Update, Values, decode};
use super::schema;

/// The dialect of SQLite.
#[derive(Debug)]
pub(super) struct Sqlite;

/// Microseconds since 1970.
const NOW: &str = "CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)";

impl Dialect for Sqlite {
    type Database = sqlx::Sqlite;
    type Connection = SqliteConnection;
    type Options = SqliteConnectOptions;

    const NAME: &'static str = "sqlite";
    /// One that has read first could not get the lock later.
    const BEGIN: &'static str = "BEGIN IMMEDIATE";
    const MIGRATIONS: &'static [&'static str] = &[include_str!("../../../migrations/sqlite/0001_records.sql")];
    const ONE_TRANSACTION: bool = true;

    fn options(url: &str) -> Result<SqliteConnectOptions, InvalidUrl> {
        let options = SqliteConnectOptions::from_str(url).map_err(|error| InvalidUrl(error.to_string()))?;
        if !url.starts_with("sqlite:") {
            return Err(InvalidUrl("write sqlite:records.db".into()));
        }
        // Each session would have a database of its own, which ends with it.
        let file = options.get_filename().to_string_lossy();
        if file.is_empty()
            || [":memory:", "sqlx-in-memory", "mode=memory"].iter().any(|memory| file.contains(memory) || url.contains(memory))
        {
            return Err(InvalidUrl(
                "a database in memory ends with its session: name a file, as sqlite:records.db, or use memory://".into(),
            ));
        }
        Ok(options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What was answered outlives a loss of power.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(2))
            .disable_statement_logging())
    }

    fn shown(options: &SqliteConnectOptions) -> String {
        options.get_filename().display().to_string()
    }

    /// Transactions are serializable.
    async fn prepare(_: &mut SqliteConnection) -> sqlx::Result<()> {
        Ok(())
    }

    async fn connect(options: &SqliteConnectOptions) -> sqlx::Result<SqliteConnection> {
        // Several processes that make a file write ahead are not made to wait for each other.
        patiently(|| options.connect()).await
    }

    /// By the [result codes](https://www.sqlite.org/rescode.html), of which the extended ones keep the kind in the lowest byte.
    fn fault(error: &dyn DatabaseError) -> Fault {
        let code: i32 = error.code().and_then(|code| code.parse().ok()).unwrap_or_default();
        match code & 0xff {
            // Aborted, busy, locked.
            4..=6 => Fault::Locked,
            // Too big, constraint, mismatch.
            18..=20 => Fault::Row,
            // Error (as a missing table), permission, read only, cannot open, not a database, not allowed.
            1 | 3 | 8 | 14 | 26 | 23 => Fault::Refused,
            _ => Fault::Unavailable,
        }
    }

    /// One transaction, so that the file is written once.
    async fn begin(connection: &mut SqliteConnection) -> sqlx::Result<()> {
        connection.execute(Self::BEGIN).await.map(drop)
    }

    async fn commit(connection: &mut SqliteConnection) -> sqlx::Result<()> {
        connection.execute("COMMIT").await.map(drop)
    }

    /// It fails where a full disk or a trigger has done so already.
    async fn rollback(connection: &mut SqliteConnection) {
        let _ = connection.execute("ROLLBACK").await;
    }

    async fn read(connection: &mut SqliteConnection, mode: Mode, keys: &[&Key]) -> sqlx::Result<Vec<Option<Row>>> {
        let sql = format!(
            "SELECT status, generation, step, owner, lease_until - {NOW} AS lease_left, crashes, body, last_error, lettered, revision,
                kept_until > {NOW} AS is_kept
             FROM {} WHERE consumer = ? AND business_key = ? AND msg_id = ?",
            table(mode)
        );
        let mut rows = Vec::with_capacity(keys.len());
        for key in keys {
            let query = sqlx::query(AssertSqlSafe(sql.clone())).bind(&key.consumer).bind(&key.business_key).bind(&key.msg_id);
            let row = query.fetch_optional(&mut *connection).await?;
            rows.push(row.as_ref().map(decode).transpose()?);
        }
        Ok(rows)
    }

    async fn insert(connection: &mut SqliteConnection, mode: Mode, rows: &[Insert]) -> sqlx::Result<Vec<bool>> {
        let sql = format!(
            "INSERT INTO {} (consumer, business_key, msg_id, status, generation, step, owner, lease_until, crashes, body, last_error,
                lettered, revision, kept_until, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, {NOW} + ?8 * 1000, ?9, ?10, ?11, ?12, 0, {NOW} + ?13 * 1000, {NOW}, {NOW})
             ON CONFLICT (consumer, business_key, msg_id) DO NOTHING",
            table(mode)
        );
        let mut inserted = Vec::with_capacity(rows.len());
        for row in rows {
            let done = bind(sqlx::query(AssertSqlSafe(sql.clone())), &row.key, &row.values).execute(&mut *connection).await?;
            inserted.push(done.rows_affected() == 1);
        }
        Ok(inserted)
    }

    async fn update(connection: &mut SqliteConnection, mode: Mode, rows: &[Update]) -> sqlx::Result<Vec<bool>> {
        let sql = format!(
            "UPDATE {} SET status = ?4, generation = coalesce(?5, generation), step = coalesce(?6, step), owner = ?7,
                lease_until = {NOW} + ?8 * 1000, crashes = coalesce(?9, crashes),
                body = coalesce(?10, CASE WHEN NOT ?14 THEN body END), last_error = CASE WHEN ?12 THEN last_error ELSE ?11 END, lettered = ?12, revision = revision + 1,
                kept_until = {NOW} + ?13 * 1000, created_at = CASE WHEN ?14 THEN {NOW} ELSE created_at END, updated_at = {NOW}
             WHERE consumer = ?1 AND business_key = ?2 AND msg_id = ?3 AND status = ?15 AND owner IS ?16
                AND CASE WHEN ?17 IS NULL THEN kept_until > {NOW} ELSE revision = ?17 END",
            table(mode)
        );
        let mut changed = Vec::with_capacity(rows.len());
        for row in rows {
            let query = bind(sqlx::query(AssertSqlSafe(sql.clone())), &row.key, &row.values)
                .bind(row.anew)
                .bind(&row.was_status)
                .bind(&row.was_owner)
                .bind(row.was_revision);
            changed.push(query.execute(&mut *connection).await?.rows_affected() == 1);
        }
        Ok(changed)
    }

    /// None: the settings are ours.
    async fn warnings(_: &mut SqliteConnection) -> sqlx::Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn purge(connection: &mut SqliteConnection, mode: Mode, at_most: u32) -> sqlx::Result<u64> {
        let (table, ended) = (table(mode), super::life::ENDED);
        let sql = format!(
            "DELETE FROM {table} WHERE (consumer, business_key, msg_id) IN (
                SELECT consumer, business_key, msg_id FROM {table} WHERE {ended} AND kept_until <= {NOW} ORDER BY kept_until LIMIT ?)"
        );
        Ok(sqlx::query(AssertSqlSafe(sql)).bind(at_most).execute(connection).await?.rows_affected())
    }

    async fn stuck(connection: &mut SqliteConnection, mode: Mode, at_most: u32) -> sqlx::Result<Vec<Stuck>> {
        let sql = format!(
            "SELECT consumer, business_key, msg_id, status, generation, step, crashes, last_error, ({NOW} - updated_at) / 1000000 AS since
             FROM {} WHERE {} ORDER BY updated_at LIMIT ?",
            table(mode),
            super::life::stuck(NOW)
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).bind(at_most).fetch_all(connection).await?;
        rows.iter().map(super::life::decode).collect()
    }

    async fn migrate(connection: &mut SqliteConnection) -> sqlx::Result<()> {
        while let Err(error) = Self::begin(connection).await {
            if !is_locked(&error) {
                return Err(error);
            }
        }
        let migrated = schema::run_missing::<Self>(connection).await;
        if migrated.is_ok() {
            Self::commit(connection).await
        } else {
            Self::rollback(connection).await;
            migrated
        }
    }

    async fn script(connection: &mut SqliteConnection, sql: &'static str) -> sqlx::Result<()> {
        connection.execute(sqlx::raw_sql(sql)).await.map(drop)
    }

    async fn version(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
        let there: i64 =
            sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = 'mq_schema'").fetch_one(&mut *connection).await?;
        if there == 0 {
            return Ok(0);
        }
        sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM mq_schema").fetch_one(connection).await
    }
}

/// Opens a file as soon as nobody has locked it; for how long, the caller sees to.
async fn patiently<F: Future<Output = sqlx::Result<SqliteConnection>>>(open: impl Fn() -> F) -> sqlx::Result<SqliteConnection> {
    loop {
        match open().await {
            Err(error) if is_locked(&error) => sleep(Duration::from_millis(20)).await,
            opened => return opened,
        }
    }
}

fn is_locked(error: &sqlx::Error) -> bool {
    fault::<Sqlite>(error) == Fault::Locked
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, SqliteArguments>;

fn bind<'q>(query: Query<'q>, key: &'q Key, values: &'q Values) -> Query<'q> {
    query
        .bind(&key.consumer)
        .bind(&key.business_key)
        .bind(&key.msg_id)
        .bind(values.status)
        .bind(values.generation)
        .bind(values.step)
        .bind(&values.owner)
        .bind(values.lease)
        .bind(values.crashes)
        .bind(values.body)
        .bind(&values.last_error)
        .bind(values.lettered)
        .bind(values.kept)
}
