//! PostgreSQL (9.5 or later: `ON CONFLICT`).

use std::str::FromStr as _;

use sqlx::error::DatabaseError;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection, Row as _};

use super::super::contract::Mode;
use super::super::invalid_url::InvalidUrl;
use super::dialect::{Dialect, Fault, table};
use super::key::Key;
use super::life::Stuck;
use super::row::{Insert, Row, Update, Values, decode};
use super::schema;

/// The dialect of PostgreSQL.
#[derive(Debug)]
pub(super) struct Postgres;

/// The advisory lock of who migrates: the bytes of `mqguard`.
const MIGRATION_LOCK: i64 = 0x006d_7167_7561_7264;

impl Dialect for Postgres {
    type Database = sqlx::Postgres;
    type Connection = PgConnection;
    type Options = PgConnectOptions;

    const NAME: &'static str = "postgres";
    const UNMARK: &'static str = "RELEASE SAVEPOINT mqguard; RESET search_path";
    const MIGRATIONS: &'static [&'static str] = &[include_str!("../../../migrations/postgres/0001_records.sql")];

    fn options(url: &str) -> Result<PgConnectOptions, InvalidUrl> {
        let options = PgConnectOptions::from_str(url).map_err(|error| InvalidUrl(error.to_string()))?;
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(InvalidUrl("it does not begin with postgres:// or postgresql://".into()));
        }
        if options.get_database().is_none_or(str::is_empty) {
            return Err(InvalidUrl("it names no database: write postgres://user:password@host:5432/database".into()));
        }
        Ok(options.application_name("mqguard").disable_statement_logging())
    }

    fn shown(options: &PgConnectOptions) -> String {
        format!("{}:{}/{}", options.get_host(), options.get_port(), options.get_database().unwrap_or_default())
    }

    async fn prepare(connection: &mut PgConnection) -> sqlx::Result<()> {
        connection.execute("SET default_transaction_isolation = 'read committed'").await.map(drop)
    }

    async fn connect(options: &PgConnectOptions) -> sqlx::Result<PgConnection> {
        let mut connection = options.connect().await?;
        set_statement_timeout(&mut connection).await?;
        Self::prepare(&mut connection).await?;
        // What the server or the role has set for every session may be otherwise. Rows are found by their keys one after the other, so
        // that whoever changes many locks them in the order of their keys.
        let settings = "SET default_transaction_deferrable = off; SET lock_timeout = '1s'; SET jit = off;
            SET enable_nestloop = on; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_indexscan = on;
            SET enable_bitmapscan = off; SET enable_seqscan = off";
        connection.execute(settings).await?;
        Ok(connection)
    }

    async fn wait_for_locks(connection: &mut PgConnection, wait: bool) -> sqlx::Result<()> {
        let set = if wait { "SET lock_timeout = '1s'" } else { "SET lock_timeout = '10ms'" };
        connection.execute(set).await.map(drop)
    }

    /// By the [error codes](https://www.postgresql.org/docs/current/errcodes-appendix.html).
    fn fault(error: &dyn DatabaseError) -> Fault {
        let code = error.code().unwrap_or_default();
        match &*code {
            "40001" | "40P01" => Fault::Again,
            "55P03" => Fault::Locked,
            // Read only; ended by an operator, a crash, a shutdown, or for being idle; the prepared statement is not there, or the table
            // was altered.
            "25006" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04" | "26000" | "0A000" => Fault::Lost,
            // A statement before has failed.
            "25P02" => Fault::Row,
            code => match code.get(..2).unwrap_or_default() {
                "08" => Fault::Lost,
                "28" | "3D" | "3F" | "42" | "0P" => Fault::Refused,
                "" | "25" | "40" | "53" | "54" | "55" | "57" | "58" | "F0" | "XX" => Fault::Unavailable,
                // A constraint, a value, or what a trigger says, with a code of its own.
                _ => Fault::Row,
            },
        }
    }

    async fn read(connection: &mut PgConnection, mode: Mode, keys: &[&Key]) -> sqlx::Result<Vec<Option<Row>>> {
        let sql = format!(
            "SELECT v.nth, t.status, t.generation, t.step, t.owner,
                (extract(epoch FROM t.lease_until - clock_timestamp()) * 1000000)::bigint AS lease_left,
                t.crashes, t.body, t.last_error, t.lettered, t.revision, t.kept_until > clock_timestamp() AS is_kept
             FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS v(consumer, business_key, msg_id, nth)
             JOIN {} t USING (consumer, business_key, msg_id)",
            table(mode)
        );
        let part = |part: fn(&Key) -> &String| keys.iter().map(|key| part(key).as_str()).collect::<Vec<_>>();
        let query = sqlx::query(AssertSqlSafe(sql));
        let query = query.bind(part(|key| &key.consumer)).bind(part(|key| &key.business_key)).bind(part(|key| &key.msg_id));
        let mut rows = vec![None; keys.len()];
        for row in query.fetch_all(connection).await? {
            place(&mut rows, row.try_get("nth")?, Some(unescape(decode(&row)?)));
        }
        Ok(rows)
    }

    async fn insert(connection: &mut PgConnection, mode: Mode, rows: &[Insert]) -> sqlx::Result<Vec<bool>> {
        let sql = format!(
            "INSERT INTO {} (consumer, business_key, msg_id, status, generation, step, owner, lease_until, crashes, body, last_error,
                lettered, revision, kept_until, created_at, updated_at)
             SELECT consumer, business_key, msg_id, status, generation, step, owner,
                clock_timestamp() + lease * interval '1 millisecond', crashes, body, last_error, lettered, 0,
                clock_timestamp() + kept * interval '1 millisecond', clock_timestamp(), clock_timestamp()
             FROM {VALUES}
             ON CONFLICT (consumer, business_key, msg_id) DO NOTHING RETURNING consumer, business_key, msg_id",
            table(mode)
        );
        let keys: Vec<&Key> = rows.iter().map(|row| &row.key).collect();
        let query = bind(sqlx::query(AssertSqlSafe(sql)), &keys, rows.iter().map(|row| &row.values));
        let mut inserted = vec![false; rows.len()];
        for row in query.fetch_all(connection).await? {
            let key = Key { consumer: row.try_get(0)?, business_key: row.try_get(1)?, msg_id: row.try_get(2)? };
            // They are sorted, as groups are.
            if let Ok(nth) = keys.binary_search(&&key) {
                inserted[nth] = true;
            }
        }
        Ok(inserted)
    }

    async fn update(connection: &mut PgConnection, mode: Mode, rows: &[Update]) -> sqlx::Result<Vec<bool>> {
        let sql = format!(
            "UPDATE {} t SET status = v.status, generation = coalesce(v.generation, t.generation), step = coalesce(v.step, t.step),
                owner = v.owner, lease_until = clock_timestamp() + v.lease * interval '1 millisecond',
                crashes = coalesce(v.crashes, t.crashes), body = coalesce(v.body, CASE WHEN NOT w.anew THEN t.body END),
                last_error = CASE WHEN v.lettered THEN t.last_error ELSE v.last_error END,
                lettered = v.lettered, revision = t.revision + 1, kept_until = clock_timestamp() + v.kept * interval '1 millisecond',
                created_at = CASE WHEN w.anew THEN clock_timestamp() ELSE t.created_at END, updated_at = clock_timestamp()
             FROM {VALUES}
             JOIN unnest($14::text[], $15::text[], $16::bigint[], $17::bool[]) WITH ORDINALITY
                AS w(was_status, was_owner, was_revision, anew, nth) USING (nth)
             WHERE t.consumer = v.consumer AND t.business_key = v.business_key AND t.msg_id = v.msg_id
                AND t.status = w.was_status AND t.owner IS NOT DISTINCT FROM w.was_owner
                AND CASE WHEN w.was_revision IS NULL THEN t.kept_until > clock_timestamp() ELSE t.revision = w.was_revision END
             RETURNING v.nth",
            table(mode)
        );
        let keys: Vec<&Key> = rows.iter().map(|row| &row.key).collect();
        let query = bind(sqlx::query(AssertSqlSafe(sql)), &keys, rows.iter().map(|row| &row.values))
            .bind(rows.iter().map(|row| row.was_status.as_str()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.was_owner.as_deref()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.was_revision).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.anew).collect::<Vec<_>>());
        let mut changed = vec![false; rows.len()];
        for row in query.fetch_all(connection).await? {
            place(&mut changed, row.try_get(0)?, true);
        }
        Ok(changed)
    }

    async fn warnings(connection: &mut PgConnection) -> sqlx::Result<Vec<String>> {
        let settings: Vec<(String, String)> = sqlx::query_as(
            "SELECT name, setting FROM pg_settings WHERE (name, setting) IN (('fsync', 'off'), ('synchronous_commit', 'off'))",
        )
        .fetch_all(connection)
        .await?;
        let warning = |(name, value)| {
            format!(
                "postgres: `{name}` is `{value}`: a server that crashes forgets the last records, and their messages may be processed again"
            )
        };
        Ok(settings.into_iter().map(warning).collect())
    }

    async fn purge(connection: &mut PgConnection, mode: Mode, at_most: u32) -> sqlx::Result<u64> {
        let table = table(mode);
        // The time of the statement can be looked up in the index; what is kept is not read then.
        let sql = format!(
            "DELETE FROM {table} WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM {table} WHERE {ENDED} AND kept_until <= statement_timestamp()
                ORDER BY kept_until LIMIT $1 FOR UPDATE SKIP LOCKED))
             AND {ENDED} AND kept_until <= statement_timestamp()",
            ENDED = super::life::ENDED
        );
        Ok(sqlx::query(AssertSqlSafe(sql)).bind(i64::from(at_most)).execute(connection).await?.rows_affected())
    }

    async fn stuck(connection: &mut PgConnection, mode: Mode, at_most: u32) -> sqlx::Result<Vec<Stuck>> {
        // It may have to read all of a large table.
        connection.execute("SET statement_timeout = 0; SET enable_seqscan = on").await?;
        let sql = format!(
            "SELECT consumer, business_key, msg_id, status, generation, step, crashes, last_error,
                extract(epoch FROM clock_timestamp() - updated_at)::bigint AS since
             FROM {} WHERE {} ORDER BY updated_at LIMIT $1",
            table(mode),
            super::life::stuck("clock_timestamp()")
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).bind(i64::from(at_most)).fetch_all(connection).await?;
        rows.iter().map(super::life::decode).collect()
    }

    async fn migrate(connection: &mut PgConnection) -> sqlx::Result<()> {
        // For how long, the caller sees to.
        connection.execute("SET lock_timeout = 0; SET statement_timeout = 0").await?;
        // Ends with the session, if this process dies.
        sqlx::query("SELECT pg_advisory_lock($1)").bind(MIGRATION_LOCK).execute(&mut *connection).await?;
        let migrated = schema::run_missing::<Self>(connection).await;
        sqlx::query("SELECT pg_advisory_unlock($1)").bind(MIGRATION_LOCK).execute(&mut *connection).await?;
        connection.execute("SET lock_timeout = '1s'; SET statement_timeout = '5s'").await?;
        migrated
    }

    async fn script(connection: &mut PgConnection, sql: &'static str) -> sqlx::Result<()> {
        connection.execute(sqlx::raw_sql(sql)).await.map(drop)
    }

    async fn version(connection: &mut PgConnection) -> sqlx::Result<i64> {
        let there: bool = sqlx::query_scalar("SELECT to_regclass('mq_schema') IS NOT NULL").fetch_one(&mut *connection).await?;
        if !there {
            return Ok(0);
        }
        sqlx::query_scalar("SELECT coalesce(max(version), 0)::bigint FROM mq_schema").fetch_one(connection).await
    }
}

/// A role may allow its sessions so little time that on a busy host this very statement is cancelled: then it is tried again.
async fn set_statement_timeout(connection: &mut PgConnection) -> sqlx::Result<()> {
    const TRIES: usize = 20;
    const CANCELLED: &str = "57014";
    let mut tries = 1;
    loop {
        match connection.execute("SET statement_timeout = '5s'").await {
            Err(sqlx::Error::Database(error)) if tries < TRIES && error.code().as_deref() == Some(CANCELLED) => tries += 1,
            other => return other.map(drop),
        }
    }
}

/// What [`bind`] binds, as rows.
const VALUES: &str =
    "unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[],
    $9::bigint[], $10::bigint[], $11::text[], $12::bool[], $13::bigint[]) WITH ORDINALITY
    AS v(consumer, business_key, msg_id, status, generation, step, owner, lease, crashes, body, last_error, lettered, kept, nth)";

type Query<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

fn bind<'q>(query: Query<'q>, keys: &[&Key], values: impl Iterator<Item = &'q Values> + Clone) -> Query<'q> {
    let part = |part: fn(&Key) -> &String| keys.iter().map(|key| part(key).clone()).collect::<Vec<_>>();
    let number = |number: fn(&Values) -> Option<i64>| values.clone().map(number).collect::<Vec<_>>();
    let text = |text: fn(&Values) -> Option<&str>| values.clone().map(text).collect::<Vec<_>>();
    query
        .bind(part(|key| &key.consumer))
        .bind(part(|key| &key.business_key))
        .bind(part(|key| &key.msg_id))
        .bind(text(|values| Some(values.status)))
        .bind(number(|values| values.generation))
        .bind(number(|values| values.step))
        .bind(text(|values| values.owner.as_deref()))
        .bind(number(|values| values.lease))
        .bind(number(|values| values.crashes))
        .bind(number(|values| values.body))
        .bind(values.clone().map(|values| values.last_error.as_deref().map(escaped)).collect::<Vec<_>>())
        .bind(values.clone().map(|values| values.lettered).collect::<Vec<_>>())
        .bind(number(|values| Some(values.kept)))
}

/// What the database counts from 1.
fn place<T>(places: &mut [T], nth: i64, value: T) {
    let place = usize::try_from(nth - 1).ok().and_then(|nth| places.get_mut(nth));
    if let Some(place) = place {
        *place = value;
    }
}

/// PostgreSQL has no text with a zero byte: the escape is `SUB`, which is in no error either, as a rule.
fn escaped(text: &str) -> String {
    text.replace('\u{1a}', "\u{1a}1").replace('\0', "\u{1a}0")
}

fn unescape(row: Row) -> Row {
    Row { last_error: row.last_error.as_deref().map(unescaped), ..row }
}

fn unescaped(text: &str) -> String {
    text.replace("\u{1a}0", "\0").replace("\u{1a}1", "\u{1a}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_be_kept() {
        for text in ["", "no stock", "\0", "\u{1a}", "\u{1a}0", "\u{1a}1\0\u{1a}"] {
            assert!(!escaped(text).contains('\0'));
            assert_eq!(unescaped(&escaped(text)), text);
        }
    }
}
