//! Records as rows. Times are relative to the database's clock in both directions, so no other clock is asked, and no time zone matters.

use std::time::Duration;

use sqlx::{ColumnIndex, Decode, Type};

use super::super::contract::{Owner, StoreError, Turn};
use super::super::fingerprint::Fingerprint;
use super::super::protocol::{Record, State};
use super::key::Key;

/// The longest lease or retention that is written, in milliseconds: a hundred years.
const FOR_EVER: u64 = 100 * 365 * 24 * 3_600 * 1_000;

/// What a row says.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) status: String,
    pub(super) generation: i64,
    pub(super) step: i64,
    pub(super) owner: Option<String>,
    /// Microseconds until the lease ends; negative when it has.
    pub(super) lease_left: Option<i64>,
    pub(super) crashes: i64,
    pub(super) body: Option<i64>,
    pub(super) last_error: Option<String>,
    pub(super) lettered: bool,
    pub(super) revision: i64,
    /// Whether it is still to be known; a row past its time is as none.
    pub(super) is_kept: bool,
}

pub(super) fn decode<'r, R: sqlx::Row>(row: &'r R) -> sqlx::Result<Row>
where
    &'static str: ColumnIndex<R>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    Option<String>: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    Option<i64>: Decode<'r, R::Database> + Type<R::Database>,
    bool: Decode<'r, R::Database> + Type<R::Database>,
{
    Ok(Row {
        status: row.try_get("status")?,
        generation: row.try_get("generation")?,
        step: row.try_get("step")?,
        owner: row.try_get("owner")?,
        lease_left: row.try_get("lease_left")?,
        crashes: row.try_get("crashes")?,
        body: row.try_get("body")?,
        last_error: row.try_get("last_error")?,
        lettered: row.try_get("lettered")?,
        revision: row.try_get("revision")?,
        is_kept: row.try_get("is_kept")?,
    })
}

impl Row {
    /// The record, on a clock that shows 0 now.
    pub(super) fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        if !self.is_kept {
            return Ok(None);
        }
        let unusable = |reason: String| StoreError::Unusable { key: key.shown(), reason };
        let number = |name: &str, value: i64| u32::try_from(value).map_err(|_| unusable(format!("its {name} is {value}")));
        let owner = match &self.owner {
            None => None,
            Some(text) => {
                let token = u128::from_str_radix(text, 16).map_err(|_| unusable(format!("its owner is `{text}`")))?;
                Some(Owner(token))
            }
        };
        let state = state(&self.status).ok_or_else(|| unusable(format!("its status is `{}`", self.status)))?;
        let left = self.lease_left.map_or(0, |left| u64::try_from(left).unwrap_or(0));
        let owes_letter = state == State::Failed && !self.lettered;
        Ok(Some(Record {
            state,
            turn: Turn { generation: number("generation", self.generation)?, step: number("step", self.step)? },
            fingerprint: self.body.map(|bits| Fingerprint(bits.cast_unsigned())),
            owner,
            lease_until: left.div_ceil(1_000),
            crashes: number("crashes", self.crashes)?,
            error: self.last_error.clone().filter(|_| owes_letter),
            lettered: self.lettered,
        }))
    }
}

fn state(status: &str) -> Option<State> {
    [State::Pending, State::Processing, State::Success, State::Failed].into_iter().find(|state| self::status(*state) == status)
}

pub(super) fn status(state: State) -> &'static str {
    match state {
        State::Pending => "pending",
        State::Processing => "processing",
        State::Success => "success",
        State::Failed => "failed",
    }
}

/// What to write into a row. What is `None` stays as it is there.
#[derive(Debug, Clone)]
pub(super) struct Values {
    pub(super) status: &'static str,
    pub(super) generation: Option<i64>,
    pub(super) step: Option<i64>,
    pub(super) owner: Option<String>,
    /// Milliseconds from now; no lease when there is none.
    pub(super) lease: Option<i64>,
    pub(super) crashes: Option<i64>,
    pub(super) body: Option<i64>,
    /// In a row whose letter is out it stays as it is, for its reader.
    pub(super) last_error: Option<String>,
    pub(super) lettered: bool,
    /// Milliseconds from now.
    pub(super) kept: i64,
}

impl Values {
    /// Everything that a record says, on a clock that shows 0 now.
    pub(super) fn all(record: &Record, ttl: Duration) -> Self {
        Self {
            generation: Some(record.turn.generation.into()),
            step: Some(record.turn.step.into()),
            crashes: Some(record.crashes.into()),
            body: record.fingerprint.map(|fingerprint| fingerprint.0.cast_signed()),
            ..Self::of_step(record, None, ttl)
        }
    }

    /// What a step changes in a record of which no more than the owner and the state are known.
    pub(super) fn of_step(record: &Record, turn: Option<Turn>, ttl: Duration) -> Self {
        Self {
            status: status(record.state),
            generation: turn.map(|turn| turn.generation.into()),
            step: turn.map(|turn| turn.step.into()),
            owner: record.owner.map(|owner| owner.to_string()),
            lease: (record.lease_until > 0).then(|| capped(record.lease_until)),
            crashes: None,
            body: None,
            last_error: record.error.clone(),
            lettered: record.lettered,
            kept: capped(record.kept_until(0, ttl)),
        }
    }
}

fn capped(millis: u64) -> i64 {
    millis.min(FOR_EVER).cast_signed()
}

/// A row that is not there yet.
#[derive(Debug, Clone)]
pub(super) struct Insert {
    pub(super) key: Key,
    pub(super) values: Values,
}

/// A change of a row, if it is still as it was.
#[derive(Debug, Clone)]
pub(super) struct Update {
    pub(super) key: Key,
    pub(super) was_status: String,
    pub(super) was_owner: Option<String>,
    /// Which write it is based on; `None` when it suits every record of this owner in this state that is still kept.
    pub(super) was_revision: Option<i64>,
    /// Whether the row stood for a record that is forgotten.
    pub(super) anew: bool,
    pub(super) values: Values,
}

impl Insert {
    /// A message that somebody is about to publish, and that should have been processed when `horizon` is over.
    pub(super) fn pending(key: Key, horizon: Duration) -> Self {
        let record = Record {
            state: State::Pending,
            turn: Turn::default(),
            fingerprint: None,
            owner: None,
            lease_until: 0,
            crashes: 0,
            error: None,
            lettered: false,
        };
        Self { key, values: Values::all(&record, horizon) }
    }

    /// The same in place of a row that only waits for its deletion; `None` when it does not.
    pub(super) fn in_place_of(&self, old: &Row) -> Option<Update> {
        let has_ended = old.status == status(State::Success) || (old.status == status(State::Failed) && old.lettered);
        (has_ended && !old.is_kept).then(|| Update {
            key: self.key.clone(),
            was_status: old.status.clone(),
            was_owner: old.owner.clone(),
            was_revision: Some(old.revision),
            anew: true,
            values: self.values.clone(),
        })
    }
}
