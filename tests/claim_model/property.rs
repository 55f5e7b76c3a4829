//! What holds in every situation, and what has to be found in some.

use mqguard::idempotency::protocol::State;
use stateright::Property;

use crate::model::ClaimModel;
use crate::world::World;

/// Invariant 1.
pub(crate) const NOT_LOST: &str = "at rest, the message has succeeded or is a dead letter";
pub(crate) const NOT_BOTH: &str = "no message succeeds and becomes a dead letter";
/// Invariant 2.
pub(crate) const SUCCESS_IS_FINAL: &str = "no claim is granted after success";
pub(crate) const NO_RUN_AFTER_SUCCESS: &str = "no run ends after success, unless a lease lapsed under its owner";
/// Invariant 3.
pub(crate) const ONE_LEASE: &str = "two owners never hold a live lease";
pub(crate) const STALE_OWNER: &str = "a stale owner's step is refused";
/// Invariant 4.
pub(crate) const RUNS: &str = "runs of a generation are at most max + 1, and one for each crash, lost connection or lapsed lease";
pub(crate) const CRASH_LOOP: &str = "a message that has crashed too often is not run again";

/// Invariant 6.
pub(crate) const EFFECTS: &str = "the writes of a transactional handler are committed once, and just when the message succeeds";

type Checked = Property<ClaimModel>;

pub(crate) fn all(model: &ClaimModel) -> Vec<Property<ClaimModel>> {
    let mut all = vec![
        Checked::always(NOT_LOST, |_, world| !world.is_at_rest() || is_settled(world)),
        Checked::always(NOT_BOTH, |_, world| !is_both(world)),
        Checked::always(SUCCESS_IS_FINAL, |_, world| !world.seen.granted_after_success),
        Checked::always(NO_RUN_AFTER_SUCCESS, |model, world| model.faults.lapses > 0 || !world.seen.ended_after_success),
        Checked::always(ONE_LEASE, |_, world| !has_two_leases(world)),
        Checked::always(STALE_OWNER, |_, world| !world.seen.stale_applied),
        Checked::always(RUNS, |model, world| u32::from(world.seen.runs) <= most_runs(model, world)),
        Checked::always(EFFECTS, |_, world| world.seen.effects == u8::from(world.seen.succeeded != 0)),
        Checked::always(CRASH_LOOP, |model, world| u32::from(world.seen.takeovers) <= model.max_crashes),
    ];
    // A model in which too little can happen would hold everything.
    all.extend([
        Checked::sometimes("a message succeeds", |_, world| world.is_at_rest() && world.seen.succeeded != 0),
        Checked::sometimes("a message dies", |_, world| world.is_at_rest() && !world.letters.is_empty()),
    ]);
    if model.faults.replays > 0 {
        all.push(Checked::sometimes("a replayed message succeeds", |_, world| world.is_at_rest() && world.seen.succeeded > 1));
    }
    if u32::from(model.faults.crashes) > model.max_crashes {
        all.push(Checked::sometimes("a crash loop ends in a letter", |model, world| {
            let looped = |crashes| crashes > model.max_crashes;
            world.is_at_rest()
                && world.record.as_ref().is_some_and(|record| record.state == State::Failed && looped(record.crashes))
        }));
    }
    all
}

fn is_settled(world: &World) -> bool {
    world.is_final() && (world.seen.succeeded != 0 || !world.letters.is_empty())
}

/// A success of a generation with a letter of the same or of a later one. The letter of an earlier one was replayed.
fn is_both(world: &World) -> bool {
    world.seen.lettered >= 1 << world.seen.succeeded.trailing_zeros().min(7)
}

fn has_two_leases(world: &World) -> bool {
    world.workers.iter().flatten().filter(|task| task.leased).count() > 1
}

fn most_runs(model: &ClaimModel, world: &World) -> u32 {
    model.max_retries + 1 + u32::from(model.faults.spent_on_runs(&world.left))
}
