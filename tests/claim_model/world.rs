//! A situation: the copies of one message, the workers, the record, and what has happened so far.

use mqguard::idempotency::protocol::{Record, State};
use mqguard::idempotency::{Owner, Turn};

use crate::faults::Faults;
use crate::store::{LEASE, NOW};

pub(crate) const WORKERS: usize = 2;
/// More than any size that is explored needs.
const GENERATIONS: usize = 4;
const STEPS: usize = 3;
/// Who made the last change, once that claim is nobody's any more.
const GONE: Owner = Owner(0);

/// All that is known of one message at a moment. Situations that differ only in names (of workers, of tokens, of times) are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// Copies that can be taken. A copy in a hold queue is one that nobody has taken yet, so there is no need to tell them apart.
    pub(crate) waiting: Copies,
    pub(crate) letters: Letters,
    pub(crate) workers: [Option<Task>; WORKERS],
    pub(crate) record: Option<Record>,
    /// The faults that may still happen.
    pub(crate) left: Faults,
    pub(crate) seen: Seen,
}

/// How many copies of each turn there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Copies([u8; GENERATIONS * STEPS]);

/// How many letters of each generation are in the dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Letters([u8; GENERATIONS]);

/// A delivery in the hands of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Task {
    pub(crate) turn: Turn,
    /// What it does next.
    pub(crate) at: At,
    /// Without it the delivery is back in the queue, and what is published or acknowledged has no effect.
    pub(crate) connected: bool,
    /// Whether the lease that it was given still lives.
    pub(crate) leased: bool,
    /// Which generation a letter of it says.
    pub(crate) letter: u32,
}

/// The next step of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum At {
    Claim,
    /// The first answer was lost.
    ClaimAgain,
    Run,
    Complete,
    PublishCopy,
    Release,
    Condemn,
    PublishLetter,
    Lettered,
    /// The copy was not published: the claim is given back with the turn that it has.
    LetGo,
    /// The transaction was undone, or its commit not answered: the claim is given back, if it is still there, with the turn that it has.
    Undone,
    /// The letter was not published: the lease on it is ended.
    LeaveLetter,
    /// A copy of the same turn is published, to be looked at again later.
    HandBack,
    Ack,
}

/// What has happened, as far as a property asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Seen {
    /// By generation, as bits.
    pub(crate) succeeded: u8,
    /// By generation of the letter, as bits.
    pub(crate) lettered: u8,
    /// The newest generation that was granted, and how often it was.
    pub(crate) generation: u32,
    pub(crate) runs: u8,
    /// How often a lapsed lease was taken over for a run of that generation.
    pub(crate) takeovers: u8,
    /// How often the writes of a handler were committed with its success.
    pub(crate) effects: u8,
    pub(crate) granted_after_success: bool,
    pub(crate) ended_after_success: bool,
    /// Somebody who is not the owner was told that a step was applied.
    pub(crate) stale_applied: bool,
}

impl World {
    /// Nothing is left to be done, but for a replay.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.waiting.is_empty() && self.workers.iter().all(Option::is_none)
    }

    /// The task that has the record's claim.
    pub(crate) fn owner(&self) -> Option<usize> {
        let owner = self.record.as_ref()?.owner?;
        (0..WORKERS).find(|&worker| token(worker) == owner && self.workers[worker].is_some_and(|task| task.at.holds()))
    }

    /// Whether the record is under a lease that lives.
    pub(crate) fn is_leased(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.is_live(NOW))
    }

    /// Whether this worker owns the record under a lease that lives.
    pub(crate) fn is_leased_to(&self, worker: usize) -> bool {
        self.is_leased() && self.owner() == Some(worker)
    }

    /// The one of all the same situations that stands for them.
    pub(crate) fn normalised(mut self) -> Self {
        for task in &mut self.workers {
            // Without the delivery there is nothing left to acknowledge.
            if task.is_some_and(|task| task.at == At::Ack && !task.connected) {
                *task = None;
            }
            if let Some(task) = task.as_mut().filter(|task| !task.at.holds()) {
                task.leased = false;
                task.letter = task.turn.generation;
            }
        }
        let owner = self.owner();
        let leased = self.is_leased();
        let mut ranked: [(Option<Task>, bool); WORKERS] =
            std::array::from_fn(|worker| (self.workers[worker], owner == Some(worker)));
        ranked.sort_unstable();
        self.workers = ranked.map(|(task, _)| task);
        if let Some(record) = &mut self.record {
            record.owner = Some(ranked.iter().position(|(_, owns)| *owns).map_or(GONE, token));
            record.lease_until = if leased { NOW + LEASE } else { 0 };
        }
        // More letters than there can be replays of differ in nothing that is looked at.
        for letters in &mut self.letters.0 {
            *letters = (*letters).min(self.left.replays + 1);
        }
        self
    }

    pub(crate) fn owes_letter(&self) -> bool {
        self.record.as_ref().is_some_and(Record::owes_letter)
    }

    /// Whether the record says how the message ended.
    pub(crate) fn is_final(&self) -> bool {
        self.record.as_ref().is_some_and(|record| match record.state {
            State::Success => true,
            State::Failed => record.lettered,
            State::Pending | State::Processing => false,
        })
    }
}

/// What a worker claims with. It has one claim at a time, and one that it has let go is renamed, so a new claim has a new token.
pub(crate) fn token(worker: usize) -> Owner {
    Owner(worker as u128 + 1)
}

impl Task {
    pub(crate) fn new(turn: Turn) -> Self {
        Self { turn, at: At::Claim, connected: true, leased: false, letter: turn.generation }
    }
}

impl At {
    /// Whether the task has, or believes to have, the claim.
    pub(crate) fn holds(self) -> bool {
        !matches!(self, Self::Claim | Self::HandBack | Self::Ack)
    }

    /// Whether the step takes time, in which the lease is renewed and its loss noticed.
    pub(crate) fn is_long(self) -> bool {
        matches!(self, Self::Run | Self::PublishCopy | Self::PublishLetter)
    }

    pub(crate) fn publishes(self) -> bool {
        matches!(self, Self::PublishCopy | Self::PublishLetter | Self::HandBack)
    }

    /// Whether the step asks the store, and asks again when the answer is lost.
    pub(crate) fn asks(self) -> bool {
        matches!(self, Self::Claim | Self::ClaimAgain | Self::Complete | Self::Release | Self::Condemn | Self::Lettered)
    }
}

impl Copies {
    pub(crate) fn add(&mut self, turn: Turn) {
        self.0[index(turn)] += 1;
    }

    pub(crate) fn take(&mut self, turn: Turn) {
        self.0[index(turn)] -= 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; GENERATIONS * STEPS]
    }

    pub(crate) fn turns(&self) -> impl Iterator<Item = Turn> {
        let turn = |index| Turn { generation: (index / STEPS) as u32, step: (index % STEPS) as u32 };
        self.0.iter().enumerate().filter(|(_, count)| **count > 0).map(move |(index, _)| turn(index))
    }
}

fn index(turn: Turn) -> usize {
    turn.generation as usize * STEPS + turn.step as usize
}

impl Letters {
    pub(crate) fn add(&mut self, generation: u32) {
        self.0[generation as usize] += 1;
    }

    pub(crate) fn take(&mut self, generation: u32) {
        self.0[generation as usize] -= 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; GENERATIONS]
    }

    pub(crate) fn generations(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(self.0).filter(|(_, count)| *count > 0).map(|(generation, _)| generation)
    }
}
