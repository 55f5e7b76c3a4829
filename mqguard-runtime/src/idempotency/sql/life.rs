//! What becomes of the rows: they end and are deleted, or they are stuck and are listed.

use std::time::{Duration, Instant};

use sqlx::{ColumnIndex, Decode, Row, Type};
use tokio::time::timeout;

use super::super::contract::Mode;
use super::dialect::{Dialect, Fault};
use super::failure::fault;

/// Which rows may be deleted once their time is over. What has not ended stays, however old it is.
pub(super) const ENDED: &str = "(status = 'success' OR (status = 'failed' AND lettered))";

/// How many rows are deleted at once: few, so that nobody waits for them.
const BATCH: u32 = 100;
/// The pause after each batch, as a multiple of the time that it took.
const REST: u32 = 2;
/// How long the deletion of a batch may take.
const LONGEST: Duration = Duration::from_secs(30);
/// How often in a row a batch may fail because of what others do.
const FAILURES: u32 = 5;

/// Which rows should have gone on by this time: a lease has lapsed and nobody has taken over, or nobody has delivered what is pending.
pub(super) fn stuck(now: &str) -> String {
    format!(
        "((status IN ('processing', 'failed') AND NOT lettered AND (lease_until IS NULL OR lease_until <= {now}))
          OR (status = 'pending' AND kept_until <= {now}))"
    )
}

/// A message that should have gone on by now: its process died and no delivery has taken over, its dead letter is owed, or it was
/// registered and never came. The broker may still hold it; if it does not, the message is lost unless somebody publishes it again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The queue.
    pub consumer: String,
    /// The business key; empty when there is none.
    pub business_key: String,
    /// The message id; empty when it is not part of the identity.
    pub message_id: String,
    /// `pending`, `processing` or `failed`.
    pub status: String,
    /// Which replay from the dead letters; 0 when there was none.
    pub generation: i64,
    /// After how many retries.
    pub step: i64,
    /// How often a lease has lapsed.
    pub crashes: i64,
    /// Why it failed, when it is a dead letter that is owed.
    pub last_error: Option<String>,
    /// Since the last change.
    pub since: Duration,
}

pub(super) fn decode<'r, R: Row>(row: &'r R) -> sqlx::Result<Stuck>
where
    &'static str: ColumnIndex<R>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    Option<String>: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
{
    let since: i64 = row.try_get("since")?;
    Ok(Stuck {
        consumer: row.try_get("consumer")?,
        business_key: row.try_get("business_key")?,
        message_id: row.try_get("msg_id")?,
        status: row.try_get("status")?,
        generation: row.try_get("generation")?,
        step: row.try_get("step")?,
        crashes: row.try_get("crashes")?,
        last_error: row.try_get("last_error")?,
        since: Duration::from_secs(since.try_into().unwrap_or(0)),
    })
}

/// Deletes what is past its time, some rows at once, with pauses in which claims go on; how many there were.
pub(super) async fn purge<D: Dialect>(connection: &mut D::Connection, mode: Mode) -> sqlx::Result<u64> {
    let (mut all, mut failures) = (0, 0);
    loop {
        let begun = Instant::now();
        let late = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
        match timeout(LONGEST, D::purge(connection, mode, BATCH)).await.map_err(late).flatten() {
            Ok(deleted) => {
                all += deleted;
                failures = 0;
                if deleted < BATCH.into() {
                    return Ok(all);
                }
            }
            // A row that is just being used again.
            Err(error) if failures < FAILURES && matches!(fault::<D>(&error), Fault::Again | Fault::Locked) => failures += 1,
            Err(error) => return Err(error),
        }
        tokio::time::sleep(begun.elapsed() * REST).await;
    }
}
