//! What a worker does with a delivery, step by step, in the order that the product takes (`consumer/pipeline.rs`, `settle.rs`).

use mqguard::idempotency::{Claim, Settled, Step, Turn};

use crate::model::ClaimModel;
use crate::store;
use crate::variant::Variant;
use crate::world::{At, Task, World};

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Retryable,
    Fatal,
}

/// Asks for the claim and does as answered.
pub(crate) fn claim(model: &ClaimModel, world: &mut World, worker: usize, task: &mut Task) {
    let answer = store::claim(world, worker, task, model.max_crashes, model.variant);
    task.at = match answer {
        Claim::Granted { .. } => {
            world.seen.runs = world.seen.runs.saturating_add(1);
            At::Run
        }
        Claim::Letter { .. } => At::PublishLetter,
        Claim::Busy { .. } if model.variant == Variant::AckBusy => At::Ack,
        Claim::Busy { .. } => At::HandBack,
        Claim::Stale | Claim::Duplicate | Claim::Conflict => At::Ack,
    };
}

/// Asks for the claim, and does not hear the answer.
pub(crate) fn claim_unheard(model: &ClaimModel, world: &mut World, worker: usize, task: &mut Task) {
    store::claim(world, worker, task, model.max_crashes, model.variant);
    task.at = At::ClaimAgain;
}

/// Ends a run.
pub(crate) fn end_run(model: &ClaimModel, world: &mut World, task: &mut Task, outcome: Outcome) {
    world.seen.ended_after_success |= world.seen.succeeded != 0;
    task.at = match outcome {
        Outcome::Success => At::Complete,
        Outcome::Retryable if task.turn.step < model.max_retries => match model.variant {
            Variant::ReleaseBeforeCopy => At::Release,
            _ => At::PublishCopy,
        },
        Outcome::Retryable | Outcome::Fatal => match model.variant {
            Variant::LetterBeforeCondemn => At::PublishLetter,
            _ => At::Condemn,
        },
    };
}

/// What is published is in the broker's hands.
pub(crate) fn store_published(world: &mut World, task: &Task) {
    match task.at {
        At::PublishCopy => world.waiting.add(next(task.turn)),
        At::PublishLetter => {
            world.letters.add(task.letter);
            world.seen.lettered |= 1 << task.letter;
        }
        _ => world.waiting.add(task.turn),
    }
}

/// It is confirmed too.
pub(crate) fn publish(model: &ClaimModel, world: &mut World, task: &mut Task) {
    store_published(world, task);
    task.at = match (task.at, model.variant) {
        (At::PublishCopy, Variant::ReleaseBeforeCopy) => At::Ack,
        (At::PublishCopy, _) => At::Release,
        (At::PublishLetter, Variant::LetterBeforeCondemn) if !world.owes_letter() => At::Condemn,
        (At::PublishLetter, _) => At::Lettered,
        _ => At::Ack,
    };
}

/// The connection or the time ended before the run did, or before what it turns into was published: the claim is given back.
pub(crate) fn give_up(model: &ClaimModel, task: &mut Task) {
    task.at = match (task.at, model.variant) {
        (At::PublishCopy, Variant::ReleaseBeforeCopy) => At::Ack,
        (At::Run | At::PublishCopy, _) => At::LetGo,
        (At::PublishLetter, _) => At::LeaveLetter,
        _ => At::Ack,
    };
}

/// Records a step and goes on as answered.
pub(crate) fn settle(model: &ClaimModel, world: &mut World, worker: usize, task: &mut Task) {
    let answer = record(model, world, worker, task);
    task.at = match (task.at, answer) {
        // Whatever the answer.
        (At::LetGo | At::LeaveLetter, _) => return give_back(world, task),
        (At::Undone, _) => At::HandBack,
        (_, Settled::Refused) if model.variant == Variant::AckRefused => At::Ack,
        (_, Settled::Refused) => At::HandBack,
        (At::Release, Settled::Applied) if model.variant == Variant::ReleaseBeforeCopy => At::PublishCopy,
        (At::Condemn, Settled::Applied) if model.variant == Variant::LetterBeforeCondemn => At::Lettered,
        (At::Condemn, Settled::Applied) => At::PublishLetter,
        (_, Settled::Applied) => At::Ack,
    };
}

/// Records a step.
pub(crate) fn record(model: &ClaimModel, world: &mut World, worker: usize, task: &mut Task) -> Settled {
    let lease = store::lease();
    let step = match task.at {
        At::Complete => Step::Complete,
        At::Release => Step::Release { next: next(task.turn) },
        At::LetGo | At::Undone => Step::Release { next: task.turn },
        At::Condemn => Step::Condemn { error: "no stock".to_owned(), lease },
        At::Lettered => Step::Lettered,
        At::LeaveLetter => Step::Renew { lease: std::time::Duration::ZERO },
        // While something takes long, the lease is renewed.
        _ => Step::Renew { lease },
    };
    store::settle(world, worker, task, &step, model.variant)
}

/// The delivery returns to the queue, unless it has.
pub(crate) fn give_back(world: &mut World, task: &mut Task) {
    if std::mem::take(&mut task.connected) {
        world.waiting.add(task.turn);
    }
    task.at = At::Ack;
}

fn next(turn: Turn) -> Turn {
    Turn { step: turn.step + 1, ..turn }
}
