//! The transitions of a record, as pure functions: no clock, no I/O. See the tables in [`idempotency`](super).
//!
//! Times are milliseconds on the store's clock, whatever its zero.

use std::time::Duration;

use super::contract::{Claim, ClaimRequest, Hold, Owner, Settled, Step, Turn};
use super::fingerprint::Fingerprint;

/// The most bytes of an error that a record keeps.
pub const MAX_ERROR: usize = 8 * 1024;

/// How long a record that owes a letter is kept at least: forgetting it would run a failed message again.
pub const OWED_FOR: Duration = Duration::from_hours(30 * 24);

/// What is known of one identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// Where it stands.
    pub state: State,
    /// The turn that holds or held the claim; of a pending record, the one that is out.
    pub turn: Turn,
    /// Of the body that was last run; `None` when the record was there before the first claim.
    pub fingerprint: Option<Fingerprint>,
    /// Who made the last change; nobody when the record was there before the first claim.
    pub owner: Option<Owner>,
    /// When the lease ends: of a record that is processing or owes a letter.
    pub lease_until: u64,
    /// How often a lease has lapsed before.
    pub crashes: u32,
    /// Why it failed, while the letter is owed; `None` when it crashed too often.
    pub error: Option<String>,
    /// Whether the dead letter of a failed record is out.
    pub lettered: bool,
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// To be run, from the record's turn on.
    Pending,
    /// Somebody runs it, under a lease.
    Processing,
    /// Done.
    Success,
    /// Given up; the dead letter is owed or out.
    Failed,
}

impl Record {
    /// Whether the lease is alive.
    #[must_use]
    pub fn is_live(&self, now: u64) -> bool {
        self.lease_until > now
    }

    /// Whether the dead letter has still to be published.
    #[must_use]
    pub fn owes_letter(&self) -> bool {
        self.state == State::Failed && !self.lettered
    }

    /// When the record, changed `now`, is forgotten.
    #[must_use]
    pub fn kept_until(&self, now: u64, ttl: Duration) -> u64 {
        let ttl = if self.owes_letter() { ttl.max(OWED_FOR) } else { ttl };
        let end = now.saturating_add(millis(ttl));
        if self.state == State::Processing || self.owes_letter() { end.max(self.lease_until) } else { end }
    }

    fn is_of(&self, owner: Owner) -> bool {
        self.owner == Some(owner)
    }
}

/// Answers a claim. The record, where there is one, is what to store in place of the old; `None` changes nothing.
#[must_use]
pub fn claim(record: Option<&Record>, request: &ClaimRequest, now: u64) -> (Claim, Option<Record>) {
    let Some(record) = record else { return grant(request, 0, now) };
    let live = record.is_live(now);
    let mine = record.is_of(request.owner);
    let differs = record.fingerprint.is_some_and(|known| known != request.fingerprint);
    let again = |answer| (if differs { Claim::Conflict } else { answer }, None);
    match record.state {
        State::Success => again(Claim::Duplicate),

        State::Failed if request.turn.generation > record.turn.generation => grant(request, 0, now),
        State::Failed if record.lettered => again(Claim::Duplicate),
        State::Failed if live && !mine => busy(record, now),
        State::Failed => letter(record, request, record.crashes, record.error.clone(), now),

        State::Pending | State::Processing if request.turn < record.turn => again(Claim::Stale),
        State::Pending => grant(request, record.crashes, now),
        State::Processing if live && mine && request.turn == record.turn => grant(request, record.crashes, now),
        State::Processing if live => busy(record, now),
        State::Processing => {
            let crashes = record.crashes.saturating_add(1);
            if crashes > request.max_crashes { letter(record, request, crashes, None, now) } else { grant(request, crashes, now) }
        }
    }
}

/// Answers a step. The record, where there is one, is what to store in place of the old; `None` changes nothing.
#[must_use]
pub fn settle(record: Option<&Record>, hold: &Hold, step: &Step, now: u64) -> (Settled, Option<Record>) {
    let Some(record) = record.filter(|record| record.is_of(hold.owner)) else { return (Settled::Refused, None) };
    let idle = Record { lease_until: 0, error: None, lettered: false, ..record.clone() };
    let renewed = |lease| Record { lease_until: end_of(lease, now), ..record.clone() };
    match (record.state, step) {
        (State::Processing, Step::Complete) => applied(Record { state: State::Success, ..idle }),
        (State::Success, Step::Complete) => (Settled::Applied, None),

        (State::Processing, Step::Release { next }) => applied(Record { state: State::Pending, turn: *next, ..idle }),
        (State::Pending, Step::Release { next }) if record.turn == *next => (Settled::Applied, None),

        (State::Processing, Step::Condemn { error, lease }) => {
            applied(Record { state: State::Failed, error: Some(cut(error).to_owned()), ..renewed(*lease) })
        }
        (State::Failed, Step::Condemn { .. }) if record.lettered => (Settled::Applied, None),
        (State::Failed, Step::Condemn { lease, .. }) => applied(renewed(*lease)),

        (State::Failed, Step::Lettered) if record.lettered => (Settled::Applied, None),
        (State::Failed, Step::Lettered) => applied(Record { lettered: true, ..idle }),

        (State::Processing, Step::Renew { lease }) => applied(renewed(*lease)),
        (State::Failed, Step::Renew { lease }) if !record.lettered => applied(renewed(*lease)),

        _ => (Settled::Refused, None),
    }
}

fn grant(request: &ClaimRequest, crashes: u32, now: u64) -> (Claim, Option<Record>) {
    let record = Record {
        state: State::Processing,
        turn: request.turn,
        fingerprint: Some(request.fingerprint),
        owner: Some(request.owner),
        lease_until: end_of(request.lease, now),
        crashes,
        error: None,
        lettered: false,
    };
    (Claim::Granted { crashes }, Some(record))
}

fn letter(record: &Record, request: &ClaimRequest, crashes: u32, error: Option<String>, now: u64) -> (Claim, Option<Record>) {
    let record = Record {
        state: State::Failed,
        turn: record.turn,
        fingerprint: record.fingerprint,
        owner: Some(request.owner),
        lease_until: end_of(request.lease, now),
        crashes,
        error: error.clone(),
        lettered: false,
    };
    (Claim::Letter { generation: record.turn.generation, error, crashes }, Some(record))
}

fn busy(record: &Record, now: u64) -> (Claim, Option<Record>) {
    let left = record.lease_until.saturating_sub(now).max(1);
    (Claim::Busy { left: Duration::from_millis(left) }, None)
}

fn applied(record: Record) -> (Settled, Option<Record>) {
    (Settled::Applied, Some(record))
}

fn end_of(lease: Duration, now: u64) -> u64 {
    now.saturating_add(millis(lease))
}

/// In milliseconds, rounded up: a lease or retention is never shorter than asked for.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// What a record keeps of an error: at most [`MAX_ERROR`] bytes, whole characters.
#[must_use]
pub fn cut(error: &str) -> &str {
    &error[..error.floor_char_boundary(MAX_ERROR)]
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
