//! The store of the model: the record of one message, changed by the functions that the memory store runs.

use std::sync::LazyLock;
use std::time::Duration;

use mqguard::idempotency::protocol::{self, Record, State};
use mqguard::idempotency::{Claim, ClaimRequest, Fingerprint, Hold, Identity, Settled, Step};

use crate::variant::Variant;
use crate::world::{Task, World, token};

/// The model's clock stands still: when a lease lapses, it is the lease that is moved into the past.
pub(crate) const NOW: u64 = 1000;
pub(crate) const LEASE: u64 = 10;

const TTL: Duration = Duration::from_hours(24);

pub(crate) fn lease() -> Duration {
    Duration::from_millis(LEASE)
}

fn identity() -> Identity {
    // Its digest takes longer than a step.
    static IDENTITY: LazyLock<Identity> = LazyLock::new(|| Identity::new("orders", "", ""));
    IDENTITY.clone()
}

/// Asks for the claim, and notes what the properties want to know.
pub(crate) fn claim(world: &mut World, worker: usize, task: &mut Task, max_crashes: u32, variant: Variant) -> Claim {
    let asked = ClaimRequest {
        identity: identity(),
        turn: task.turn,
        fingerprint: Fingerprint(0),
        owner: token(worker),
        lease: lease(),
        ttl: TTL,
        max_crashes,
    };
    let before = world.record.take();
    let (answer, changed) = claim_by(variant, before.as_ref(), &asked);
    match answer {
        Claim::Granted { .. } => note_grant(world, &asked, before.as_ref()),
        Claim::Letter { generation, .. } if variant != Variant::LetterOfDelivery => task.letter = generation,
        _ => {}
    }
    task.leased = changed.is_some();
    world.record = changed.or(before);
    answer
}

fn claim_by(variant: Variant, record: Option<&Record>, asked: &ClaimRequest) -> (Claim, Option<Record>) {
    match (variant, record) {
        (Variant::IgnoreTurns, Some(record)) => {
            protocol::claim(Some(record), &ClaimRequest { turn: asked.turn.max(record.turn), ..asked.clone() }, NOW)
        }
        (Variant::IgnoreLeases, Some(record)) => protocol::claim(Some(record), asked, record.lease_until.max(NOW)),
        (Variant::ForgetCrashes, Some(record)) => protocol::claim(Some(&Record { crashes: 0, ..record.clone() }), asked, NOW),
        (Variant::ForgetSuccess, Some(Record { state: State::Success, .. })) => protocol::claim(None, asked, NOW),
        _ => protocol::claim(record, asked, NOW),
    }
}

/// Records a step.
pub(crate) fn settle(world: &mut World, worker: usize, task: &mut Task, step: &Step, variant: Variant) -> Settled {
    let mut hold = Hold { identity: identity(), owner: token(worker), ttl: TTL };
    let is_owner = world.record.as_ref().is_some_and(|record| record.owner == Some(hold.owner));
    if let (Variant::SettleForAnyone, Some(owner)) = (variant, world.record.as_ref().and_then(|record| record.owner)) {
        hold.owner = owner;
    }
    let (answer, changed) = protocol::settle(world.record.as_ref(), &hold, step, NOW);
    let commits = *step == Step::Complete && (changed.is_some() || variant == Variant::CommitAnyway);
    world.seen.effects += u8::from(commits && world.seen.effects < 2);
    if answer == Settled::Applied {
        world.seen.stale_applied |= !is_owner;
        if let Some(record) = changed {
            if record.state == State::Success {
                world.seen.succeeded |= 1 << task.turn.generation;
            }
            world.record = Some(record);
        }
        task.leased = is_owner && world.is_leased();
    }
    answer
}

/// The lease passes, and with it every one that was given before.
pub(crate) fn lapse(world: &mut World) {
    if let Some(record) = &mut world.record {
        record.lease_until = NOW;
    }
    end_leases(world);
}

fn end_leases(world: &mut World) {
    for task in world.workers.iter_mut().flatten() {
        task.leased = false;
    }
}

/// Notes that a claim was granted, of a record that was like this.
fn note_grant(world: &mut World, asked: &ClaimRequest, before: Option<&Record>) {
    if before.is_some_and(|record| record.state == State::Failed && record.turn.generation < asked.turn.generation) {
        // A newer generation does not wait for an owed letter: the lease to publish that one ends here.
        end_leases(world);
    }
    let seen = &mut world.seen;
    seen.granted_after_success |= seen.succeeded != 0;
    if asked.turn.generation > seen.generation {
        (seen.generation, seen.runs, seen.takeovers) = (asked.turn.generation, 0, 0);
    }
    let of_another = |record: &&Record| record.state == State::Processing && record.owner != Some(asked.owner);
    seen.takeovers += u8::from(before.filter(of_another).is_some());
}
