//! MariaDB (10.3 or later) and MySQL (8.0 or later).

use std::fmt::Write as _;
use std::str::FromStr as _;

use sqlx::error::DatabaseError;
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlDatabaseError};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, MySqlConnection, Row as _};

use super::super::contract::Mode;
use super::super::invalid_url::InvalidUrl;
use super::dialect::{Dialect, Fault, table};
use super::key::Key;
use super::life::Stuck;
use super::row::{Insert, Row, Update, Values, decode};
use super::schema;

/// The dialect of MariaDB and MySQL.
#[derive(Debug)]
pub(super) struct MySql;

/// How long to wait for another process that migrates, in seconds.
const MIGRATION_WAIT: i64 = 60;

impl Dialect for MySql {
    type Database = sqlx::MySql;
    type Connection = MySqlConnection;
    type Options = MySqlConnectOptions;

    const NAME: &'static str = "mysql";
    const MIGRATIONS: &'static [&'static str] = &[include_str!("../../../migrations/mysql/0001_records.sql")];

    fn options(url: &str) -> Result<MySqlConnectOptions, InvalidUrl> {
        let options = MySqlConnectOptions::from_str(url).map_err(|error| InvalidUrl(error.to_string()))?;
        if options.get_database().is_none_or(str::is_empty) {
            return Err(InvalidUrl("it names no database: write mysql://user:password@host:3306/database".into()));
        }
        if !["mysql://", "mariadb://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(InvalidUrl("it does not begin with mysql:// or mariadb://".into()));
        }
        // What is kept is not what another character set can say.
        Ok(options.charset("utf8mb4").disable_statement_logging())
    }

    fn shown(options: &MySqlConnectOptions) -> String {
        format!("{}:{}/{}", options.get_host(), options.get_port(), options.get_database().unwrap_or_default())
    }

    async fn prepare(connection: &mut MySqlConnection) -> sqlx::Result<()> {
        // In strict mode nothing is cut to fit.
        connection
            .execute(
                "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), autocommit = 1;
                 SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            )
            .await
            .map(drop)
    }

    async fn connect(options: &MySqlConnectOptions) -> sqlx::Result<MySqlConnection> {
        let mut connection = options.connect().await?;
        Self::prepare(&mut connection).await?;
        // What the server has set for every session may be otherwise.
        let settings = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 1";
        connection.execute(settings).await?;
        Ok(connection)
    }

    /// MySQL waits for a second at least.
    async fn wait_for_locks(connection: &mut MySqlConnection, wait: bool) -> sqlx::Result<()> {
        let set = if wait {
            "SET SESSION innodb_lock_wait_timeout = 1"
        } else {
            "SET SESSION innodb_lock_wait_timeout = 1 /*M! , SESSION innodb_lock_wait_timeout = 0 */"
        };
        connection.execute(set).await.map(drop)
    }

    /// By the [error numbers](https://mariadb.com/kb/en/mariadb-error-code-reference/), and by the class of the SQLSTATE, which a
    /// trigger may have chosen.
    fn fault(error: &dyn DatabaseError) -> Fault {
        let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() else { return Fault::Unavailable };
        match error.number() {
            // Deadlock; a record has changed since it was read (MariaDB 11).
            1213 | 1020 => return Fault::Again,
            1205 => return Fault::Locked,
            // Read only, as a replica is; shutting down; killed, or only what it was at; idle for too long (MySQL).
            1290 | 1792 | 1836 | 1053 | 1927 | 1317 | 4031 => return Fault::Lost,
            // A constraint: MySQL, MariaDB.
            3819 | 4025 => return Fault::Row,
            // Function, plugin, log format, expired or locked account, encryption.
            1305 | 1370 | 1410 | 1524 | 1665 | 1698 | 1820 | 1862 | 3118 | 3159 | 4151 => return Fault::Refused,
            _ => {}
        }
        match error.code().unwrap_or_default().get(..2) {
            Some("08" | "70") => Fault::Lost,
            Some("40") => Fault::Again,
            Some("28" | "3D" | "42") => Fault::Refused,
            Some("HY" | "XA" | "25" | "53" | "57" | "58") | None => Fault::Unavailable,
            // Null, too long, out of range, not text, or a trigger's own.
            Some(_) => Fault::Row,
        }
    }

    async fn read(connection: &mut MySqlConnection, mode: Mode, keys: &[&Key]) -> sqlx::Result<Vec<Option<Row>>> {
        let sql = format!(
            "SELECT v.nth, t.status, t.generation, t.step, t.owner, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), t.lease_until) AS lease_left,
                t.crashes, t.`body`, t.last_error, t.lettered, t.revision, t.kept_until > UTC_TIMESTAMP(6) AS is_kept
             FROM ({}) v STRAIGHT_JOIN {} t ON t.consumer = v.consumer AND t.business_key = v.business_key AND t.msg_id = v.msg_id",
            places(keys.len(), &KEY),
            table(mode)
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (nth, key) in padded(keys) {
            query = bind_key(query, nth, key);
        }
        let mut rows = vec![None; keys.len()];
        for row in query.fetch_all(connection).await? {
            let nth: i64 = row.try_get("nth")?;
            if let Some(place) = usize::try_from(nth).ok().and_then(|nth| rows.get_mut(nth)) {
                *place = Some(decode(&row)?);
            }
        }
        Ok(rows)
    }

    async fn insert(connection: &mut MySqlConnection, mode: Mode, rows: &[Insert]) -> sqlx::Result<Vec<bool>> {
        let sql = format!(
            "INSERT INTO {} (consumer, business_key, msg_id, status, generation, step, owner, lease_until, crashes, `body`, last_error,
                lettered, revision, kept_until, created_at, updated_at)
             SELECT consumer, business_key, msg_id, status, generation, step, owner, UTC_TIMESTAMP(6) + INTERVAL lease * 1000 MICROSECOND,
                crashes, `body`, last_error, lettered, 0, UTC_TIMESTAMP(6) + INTERVAL kept * 1000 MICROSECOND, UTC_TIMESTAMP(6),
                UTC_TIMESTAMP(6)
             FROM ({}) v WHERE nth >= 0",
            table(mode),
            places(rows.len(), &[&KEY[..], &VALUES].concat())
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (nth, row) in padded(rows) {
            query = bind_values(bind_key(query, nth, &row.key), &row.values);
        }
        match query.execute(connection).await {
            Ok(_) => Ok(vec![true; rows.len()]),
            // One was there already, so none was inserted. The key is named in every language.
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() && error.message().contains("PRIMARY") => {
                Ok(vec![false; rows.len()])
            }
            Err(error) => Err(error),
        }
    }

    async fn update(connection: &mut MySqlConnection, mode: Mode, rows: &[Update]) -> sqlx::Result<Vec<bool>> {
        let sql = format!(
            "UPDATE ({}) v STRAIGHT_JOIN {} t ON t.consumer = v.consumer AND t.business_key = v.business_key AND t.msg_id = v.msg_id
             SET t.status = v.status, t.generation = COALESCE(v.generation, t.generation), t.step = COALESCE(v.step, t.step),
                t.owner = v.owner, t.lease_until = UTC_TIMESTAMP(6) + INTERVAL v.lease * 1000 MICROSECOND,
                t.crashes = COALESCE(v.crashes, t.crashes), t.`body` = COALESCE(v.`body`, IF(v.anew, NULL, t.`body`)),
                t.last_error = IF(v.lettered, t.last_error, v.last_error), t.lettered = v.lettered,
                t.revision = t.revision + 1, t.kept_until = UTC_TIMESTAMP(6) + INTERVAL v.kept * 1000 MICROSECOND,
                t.created_at = IF(v.anew, UTC_TIMESTAMP(6), t.created_at), t.updated_at = UTC_TIMESTAMP(6)
             WHERE v.nth >= 0 AND t.status = v.was_status AND t.owner <=> v.was_owner
                AND IF(v.was_revision IS NULL, t.kept_until > UTC_TIMESTAMP(6), t.revision = v.was_revision)",
            places(rows.len(), &[&KEY[..], &VALUES, &GUARD].concat()),
            table(mode)
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (nth, row) in padded(rows) {
            query = bind_values(bind_key(query, nth, &row.key), &row.values)
                .bind(&row.was_status)
                .bind(&row.was_owner)
                .bind(row.was_revision)
                .bind(row.anew);
        }
        // Which they are is not told; sqlx has the server count those that are found.
        let found = query.execute(connection).await?.rows_affected();
        Ok(vec![usize::try_from(found) == Ok(rows.len()); rows.len()])
    }

    async fn warnings(connection: &mut MySqlConnection) -> sqlx::Result<Vec<String>> {
        let flush: i64 =
            sqlx::query_scalar("SELECT CAST(@@innodb_flush_log_at_trx_commit AS SIGNED)").fetch_one(connection).await?;
        let warning = || {
            format!(
                "mysql: `innodb_flush_log_at_trx_commit` is {flush}: a machine that crashes forgets the records of the last second, and \
                 their messages may be processed again"
            )
        };
        Ok((flush != 1).then(warning).into_iter().collect())
    }

    async fn purge(connection: &mut MySqlConnection, mode: Mode, at_most: u32) -> sqlx::Result<u64> {
        let sql = format!(
            "DELETE FROM {} WHERE {} AND kept_until <= UTC_TIMESTAMP(6) ORDER BY kept_until LIMIT ?",
            table(mode),
            super::life::ENDED
        );
        Ok(sqlx::query(AssertSqlSafe(sql)).bind(at_most).execute(connection).await?.rows_affected())
    }

    async fn stuck(connection: &mut MySqlConnection, mode: Mode, at_most: u32) -> sqlx::Result<Vec<Stuck>> {
        let sql = format!(
            "SELECT CONVERT(consumer USING utf8mb4) AS consumer, CONVERT(business_key USING utf8mb4) AS business_key,
                CONVERT(msg_id USING utf8mb4) AS msg_id, status, generation, step, crashes, last_error,
                TIMESTAMPDIFF(SECOND, updated_at, UTC_TIMESTAMP(6)) AS since
             FROM {} WHERE {} ORDER BY updated_at LIMIT ?",
            table(mode),
            super::life::stuck("UTC_TIMESTAMP(6)")
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).bind(at_most).fetch_all(connection).await?;
        rows.iter().map(super::life::decode).collect()
    }

    async fn migrate(connection: &mut MySqlConnection) -> sqlx::Result<()> {
        // Locks are of the whole server. It ends with the session, if this process dies.
        let locked: Option<i64> = sqlx::query_scalar("SELECT GET_LOCK(CONCAT('mqguard.', MD5(DATABASE())), ?)")
            .bind(MIGRATION_WAIT)
            .fetch_one(&mut *connection)
            .await?;
        if locked != Some(1) {
            return Err(sqlx::Error::Protocol(format!("another process has been migrating for over {MIGRATION_WAIT} s")));
        }
        let migrated = schema::run_missing::<Self>(connection).await;
        sqlx::query("DO RELEASE_LOCK(CONCAT('mqguard.', MD5(DATABASE())))").execute(&mut *connection).await?;
        migrated
    }

    async fn script(connection: &mut MySqlConnection, sql: &'static str) -> sqlx::Result<()> {
        connection.execute(sqlx::raw_sql(sql)).await.map(drop)
    }

    async fn version(connection: &mut MySqlConnection) -> sqlx::Result<i64> {
        let there: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'mq_schema'",
        )
        .fetch_one(&mut *connection)
        .await?;
        if there == 0 {
            return Ok(0);
        }
        sqlx::query_scalar("SELECT COALESCE(MAX(version), 0) FROM mq_schema").fetch_one(connection).await
    }
}

/// Columns of rows that travel to the server, with their types there.
const KEY: [(&str, &str); 4] = [("nth", "SIGNED"), ("consumer", "BINARY"), ("business_key", "BINARY"), ("msg_id", "BINARY")];
const VALUES: [(&str, &str); 10] = [
    ("status", "CHAR"),
    ("generation", "SIGNED"),
    ("step", "SIGNED"),
    ("owner", "CHAR"),
    ("lease", "SIGNED"),
    ("crashes", "SIGNED"),
    ("`body`", "SIGNED"),
    ("last_error", "CHAR"),
    ("lettered", "SIGNED"),
    ("kept", "SIGNED"),
];
const GUARD: [(&str, &str); 4] = [("was_status", "CHAR"), ("was_owner", "CHAR"), ("was_revision", "SIGNED"), ("anew", "SIGNED")];

/// A table of placeholders for so many rows and some more: the server prepares a statement for each power of two, not for each number.
fn places(rows: usize, columns: &[(&str, &str)]) -> String {
    let mut sql = String::new();
    for nth in 0..rows.next_power_of_two() {
        sql += if nth == 0 { "SELECT " } else { " UNION ALL SELECT " };
        for (place, (name, kind)) in columns.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            // Text in a derived table is in the collation of the connection: compared to ours as bytes.
            let _ = write!(sql, "{comma}CAST(? AS {kind})");
            if nth == 0 {
                let _ = write!(sql, " AS {name}");
            }
        }
    }
    sql
}

/// The rows with their numbers, and the last one again and again under a number that is none.
fn padded<T>(rows: &[T]) -> impl Iterator<Item = (i64, &T)> {
    let padding = rows.last().into_iter().cycle().take(rows.len().next_power_of_two() - rows.len());
    (0..).zip(rows).chain(padding.map(|row| (-1, row)))
}

type Query<'q> = sqlx::query::Query<'q, sqlx::MySql, MySqlArguments>;

fn bind_key<'q>(query: Query<'q>, nth: i64, key: &'q Key) -> Query<'q> {
    query.bind(nth).bind(key.consumer.as_bytes()).bind(key.business_key.as_bytes()).bind(key.msg_id.as_bytes())
}

fn bind_values<'q>(query: Query<'q>, values: &'q Values) -> Query<'q> {
    query
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
