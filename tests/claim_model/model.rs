//! The model that is explored: what can happen next in a situation, and what becomes of it.

use mqguard::idempotency::Turn;
use stateright::{Model, Property};

use crate::faults::Faults;
use crate::variant::Variant;
use crate::worker::{self, Outcome};
use crate::world::{At, Copies, Letters, Seen, Task, WORKERS, World};
use crate::{property, store};

/// The size of what is explored.
#[derive(Debug, Clone)]
pub(crate) struct ClaimModel {
    /// Copies of the message at the start: more than one is a duplicate publish.
    pub(crate) copies: u8,
    pub(crate) max_retries: u32,
    pub(crate) max_crashes: u32,
    pub(crate) faults: Faults,
    pub(crate) variant: Variant,
    /// Whether the success is recorded in the transaction of the handler's own writes.
    pub(crate) transactional: bool,
}

/// What can happen next. Workers are named by their place in the situation, which is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Take(Turn),
    End(usize, Outcome),
    /// The next step, without a fault.
    Do(usize, At),
    /// A connection that is lost leaves something unpublished.
    GiveUp(usize, At),
    Renew(usize),
    /// The worker learns, or has to assume, that its lease is lost.
    StopForLostLease(usize, At),
    Lapse,
    Crash(usize, At),
    LoseConnection(usize, At),
    Abort(usize, At),
    PublishUnconfirmed(usize, At),
    LoseAnswer(usize, At),
    Undo(usize),
    Replay(u32),
}

impl Model for ClaimModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut waiting = Copies::default();
        (0..self.copies).for_each(|_| waiting.add(Turn::default()));
        vec![World {
            waiting,
            letters: Letters::default(),
            workers: [None; WORKERS],
            record: None,
            left: self.faults,
            seen: Seen::default(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.workers.iter().any(Option::is_none) {
            actions.extend(world.waiting.turns().map(Action::Take));
        }
        for (worker, task) in world.workers.iter().enumerate() {
            if let Some(task) = task {
                steps(world, worker, task, actions);
                faults(world, worker, task, actions);
                if self.transactional && world.left.undone > 0 && task.at == At::Complete {
                    actions.push(Action::Undo(worker));
                }
            }
        }
        if world.is_leased() && (world.owner().is_none() || world.left.lapses > 0) {
            actions.push(Action::Lapse);
        }
        if world.left.replays > 0 {
            actions.extend(world.letters.generations().map(Action::Replay));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Take(turn) => {
                let idle = next.workers.iter_mut().find(|task| task.is_none())?;
                *idle = Some(Task::new(turn));
                next.waiting.take(turn);
            }
            Action::Lapse => {
                next.left.lapses -= u8::from(world.owner().is_some());
                store::lapse(&mut next);
            }
            Action::Replay(generation) => {
                next.left.replays -= 1;
                next.letters.take(generation);
                next.waiting.add(Turn { generation: generation + 1, step: 0 });
            }
            Action::End(worker, _)
            | Action::Do(worker, _)
            | Action::GiveUp(worker, _)
            | Action::Renew(worker)
            | Action::StopForLostLease(worker, _)
            | Action::Crash(worker, _)
            | Action::LoseConnection(worker, _)
            | Action::Abort(worker, _)
            | Action::PublishUnconfirmed(worker, _)
            | Action::Undo(worker)
            | Action::LoseAnswer(worker, _) => {
                let task = world.workers[worker]?;
                next.workers[worker] = Some(self.act(&mut next, worker, task, action));
                // An answer that is lost matters only where something was changed.
                if matches!(action, Action::LoseAnswer(..)) && task.at != At::ClaimAgain && next.record == world.record {
                    return None;
                }
            }
        }
        Some(next.normalised())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all(self)
    }
}

/// What a worker can do with its delivery.
fn steps(world: &World, worker: usize, task: &Task, actions: &mut Vec<Action>) {
    if task.at.is_long() && !world.is_leased_to(worker) {
        if world.owner() == Some(worker) {
            actions.push(Action::Renew(worker));
        }
        actions.push(Action::StopForLostLease(worker, task.at));
    }
    if task.at == At::Run {
        actions.extend([Outcome::Success, Outcome::Retryable, Outcome::Fatal].map(|outcome| Action::End(worker, outcome)));
    } else if task.at.publishes() && !task.connected {
        actions.push(Action::GiveUp(worker, task.at));
    } else {
        actions.push(Action::Do(worker, task.at));
    }
}

/// What can go wrong with it.
fn faults(world: &World, worker: usize, task: &Task, actions: &mut Vec<Action>) {
    let Faults { crashes, losses, aborts, unknown_publishes, lost_answers, .. } = world.left;
    // Before the claim, a crash is a delivery that was not taken yet.
    if crashes > 0 && task.at != At::Claim {
        actions.push(Action::Crash(worker, task.at));
    }
    if losses > 0 && task.connected {
        actions.push(Action::LoseConnection(worker, task.at));
    }
    if aborts > 0 && task.at.is_long() {
        actions.push(Action::Abort(worker, task.at));
    }
    if unknown_publishes > 0 && task.at.publishes() {
        actions.push(Action::PublishUnconfirmed(worker, task.at));
    }
    if lost_answers > 0 && task.at.asks() {
        actions.push(Action::LoseAnswer(worker, task.at));
    }
}

impl ClaimModel {
    /// What becomes of a worker's delivery.
    fn act(&self, next: &mut World, worker: usize, mut task: Task, action: Action) -> Task {
        match action {
            Action::End(_, outcome) => worker::end_run(self, next, &mut task, outcome),
            Action::GiveUp(..) => worker::give_up(self, &mut task),
            Action::StopForLostLease(..) => task.at = At::HandBack,
            Action::Renew(_) => {
                worker::record(self, next, worker, &mut task);
            }
            Action::Crash(..) => {
                next.left.crashes -= 1;
                worker::give_back(next, &mut task);
            }
            Action::LoseConnection(..) => {
                next.left.losses -= 1;
                next.waiting.add(task.turn);
                task.connected = false;
            }
            Action::Abort(..) => {
                next.left.aborts -= 1;
                worker::give_up(self, &mut task);
            }
            Action::PublishUnconfirmed(..) => {
                next.left.unknown_publishes -= 1;
                worker::store_published(next, &task);
            }
            Action::Undo(_) => {
                next.left.undone -= 1;
                task.at = At::Undone;
            }
            Action::LoseAnswer(..) => {
                next.left.lost_answers -= 1;
                match task.at {
                    // It is not asked again: that would record a success whose writes may have been undone.
                    At::Complete if self.transactional => {
                        worker::record(self, next, worker, &mut task);
                        task.at = At::Undone;
                    }
                    At::Claim => worker::claim_unheard(self, next, worker, &mut task),
                    // It is asked twice; whoever owns the record then, the delivery is given back.
                    At::ClaimAgain => worker::give_back(next, &mut task),
                    _ => {
                        worker::record(self, next, worker, &mut task);
                    }
                }
            }
            _ => match task.at {
                At::Claim | At::ClaimAgain => worker::claim(self, next, worker, &mut task),
                At::PublishCopy | At::PublishLetter | At::HandBack => worker::publish(self, next, &mut task),
                // The delivery is gone.
                At::Ack => task.connected = false,
                _ => worker::settle(self, next, worker, &mut task),
            },
        }
        task
    }
}
