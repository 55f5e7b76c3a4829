use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::violation::Invariant;
use crate::idempotency::{Claim, ClaimRequest, Hold, Identity, Owner, Settled, Step, Turn};

/// Watches what the store answers, with a book of its own: a store that breaks the protocol is caught, too.
#[derive(Default)]
pub(super) struct Witness {
    seen: HashMap<Identity, Seen>,
    pub(super) found: Vec<(Invariant, String)>,
}

#[derive(Default)]
struct Seen {
    owner: Option<(Owner, Turn)>,
    lease_until: Option<Instant>,
    /// Of the run whose success was recorded, and until when that is remembered.
    completed: Option<(u32, Instant)>,
    grants: HashMap<u32, u32>,
    /// When each retry is due, by its first copy.
    due: HashMap<Turn, Instant>,
    deferrals: u32,
}

/// Stores measure leases in whole milliseconds.
const GRAIN: Duration = Duration::from_millis(1);

impl Witness {
    /// The generation of this message whose success was recorded.
    pub(super) fn completed(&self, identity: &Identity) -> Option<u32> {
        self.seen.get(identity)?.completed.map(|(generation, _)| generation)
    }

    /// The most runs that one generation of a message was granted, and its uncounted retries.
    pub(super) fn runs(&self) -> impl Iterator<Item = (&Identity, u32, u32)> {
        self.seen.iter().map(|(identity, seen)| (identity, seen.grants.values().copied().max().unwrap_or(0), seen.deferrals))
    }

    /// A copy went to a hold queue.
    pub(super) fn put_off(&mut self, identity: &Identity, turn: Turn, deferrals: u32, due: Instant) {
        let seen = self.seen.entry(identity.clone()).or_default();
        seen.due.entry(turn).or_insert(due);
        seen.deferrals = seen.deferrals.max(deferrals);
    }

    pub(super) fn claimed(&mut self, request: &ClaimRequest, answer: &Claim) {
        let now = Instant::now();
        let grants = matches!(answer, Claim::Granted { .. });
        if !grants && !matches!(answer, Claim::Letter { .. }) {
            return;
        }
        let seen = self.seen.entry(request.identity.clone()).or_default();
        let identity = &request.identity;
        let is_new = seen.owner != Some((request.owner, request.turn));
        // A replay starts anew, whatever became of the generation before.
        let is_newer = seen.owner.is_some_and(|(_, turn)| turn.generation < request.turn.generation);
        if is_new && !is_newer && seen.lease_until.is_some_and(|until| now + GRAIN < until) {
            self.found.push((Invariant::OneOwner, format!("`{identity}` was granted to another owner under a live lease")));
        }
        let is_done = |(generation, until): (u32, Instant)| request.turn.generation <= generation && now < until;
        if grants && seen.completed.is_some_and(is_done) {
            self.found.push((Invariant::NoRunAfterSuccess, format!("`{identity}` was granted after its success was recorded")));
        }
        if grants && let Some(due) = seen.due.get(&request.turn).filter(|due| now + GRAIN < **due) {
            let early = due.saturating_duration_since(now);
            let retry = request.turn.step;
            self.found
                .push((Invariant::NoEarlyRetry, format!("retry {retry} of `{identity}` was granted {early:?} before its time")));
        }
        if grants && is_new {
            *seen.grants.entry(request.turn.generation).or_default() += 1;
        }
        seen.owner = Some((request.owner, request.turn));
        seen.lease_until = Some(now + request.lease);
    }

    pub(super) fn settled(&mut self, hold: &Hold, step: &Step, answer: Settled) {
        if answer == Settled::Refused {
            return;
        }
        let now = Instant::now();
        let seen = self.seen.entry(hold.identity.clone()).or_default();
        let turn = seen.owner.filter(|(owner, _)| *owner == hold.owner).map(|(_, turn)| turn);
        let Some(turn) = turn else {
            let detail = format!("{step:?} of `{}` was applied for one that does not own it", hold.identity);
            self.found.push((Invariant::OneOwner, detail));
            return;
        };
        // What is put off before it runs, as to run alone, was no run.
        if matches!(step, Step::Release { next } if *next == turn) && seen.lease_until.is_some() {
            seen.grants.entry(turn.generation).and_modify(|grants| *grants = grants.saturating_sub(1));
        }
        seen.lease_until = match step {
            Step::Renew { lease } | Step::Condemn { lease, .. } => Some(now + *lease),
            Step::Complete | Step::Release { .. } | Step::Lettered => None,
        };
        if *step == Step::Complete {
            seen.completed = Some((turn.generation, now + hold.ttl));
        }
    }
}
