use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::fault::{Fault, Schedule};
use crate::broker::{Broker, MemoryBroker};
use crate::guard::Guard;
use crate::idempotency::{MemoryStore, Store};
use crate::publish::Publisher;

pub(super) type Publish<'a> = dyn Fn(Publisher) -> Pin<Box<dyn Future<Output = ()> + 'a>> + 'a;

/// Puts consumers through every crash; see the [module](super). Needs tokio's paused clock: `#[tokio::test(start_paused = true)]`.
///
/// The page `docs/testing.md` shows one in full.
#[must_use = "nothing is tested until `run` is awaited"]
pub struct CrashTest<'a> {
    pub(super) guard: Box<dyn Fn(Guard) -> Guard + 'a>,
    pub(super) publish: Box<Publish<'a>>,
    pub(super) check: Box<dyn Fn() -> Result<(), String> + 'a>,
    pub(super) reset: Box<dyn Fn() + 'a>,
    pub(super) store: Box<dyn Fn() -> Arc<dyn Store> + 'a>,
    pub(super) broker: Box<dyn Fn(MemoryBroker) -> Arc<dyn Broker> + 'a>,
    pub(super) processes: usize,
    pub(super) most_pairs: usize,
    pub(super) chains: usize,
    pub(super) only: Option<Schedule>,
    pub(super) patience: Duration,
}

/// Pairs of faults that are run when nothing else is said.
const MOST_PAIRS: usize = 2000;

impl<'a> CrashTest<'a> {
    /// Of the consumers that `guard` adds to the guard that it is given. It is called for each process that is started, and once for
    /// each schedule to declare the queues; what the processes share has to be made outside.
    ///
    /// A store that it gives the guard is used as it is, for all schedules; under every other name that a consumer asks for there is a
    /// new store for each schedule.
    pub fn new(guard: impl Fn(Guard) -> Guard + 'a) -> Self {
        Self {
            guard: Box::new(guard),
            publish: Box::new(|_| Box::pin(async {})),
            check: Box::new(|| Ok(())),
            reset: Box::new(|| {}),
            store: Box::new(|| Arc::new(MemoryStore::new())),
            broker: Box::new(|queues| Arc::new(queues)),
            processes: 1,
            most_pairs: 0,
            chains: 0,
            only: None,
            patience: Duration::from_hours(24),
        }
    }

    /// What is published in each schedule. It begins before the process does and goes on beside it; of several
    /// [`processes`](Self::processes), all consume when it begins. Nothing goes wrong on this publisher.
    pub fn publish<F: Future<Output = ()> + 'a>(mut self, publish: impl Fn(Publisher) -> F + 'a) -> Self {
        self.publish = Box::new(move |publisher| Box::pin(publish(publisher)));
        self
    }

    /// What has to hold of your own data at the end of each schedule; the error says what does not.
    pub fn check(mut self, check: impl Fn() -> Result<(), String> + 'a) -> Self {
        self.check = Box::new(check);
        self
    }

    /// Puts your own data back to the beginning, before each schedule.
    pub fn reset(mut self, reset: impl Fn() + 'a) -> Self {
        self.reset = Box::new(reset);
        self
    }

    /// How many processes there are at the same time (default: 1). A fault meets the one whose step it is at; the others go on.
    pub fn processes(mut self, processes: usize) -> Self {
        self.processes = processes;
        self
    }

    /// Whether pairs of faults are run too (default: no), up to 2,000 of them: an even sample when there are more, which the report says.
    pub fn pairs(self, pairs: bool) -> Self {
        self.most_pairs(if pairs { MOST_PAIRS } else { 0 })
    }

    /// Runs up to so many pairs of faults, an even sample when there are more.
    pub fn most_pairs(mut self, most: usize) -> Self {
        self.most_pairs = most;
        self
    }

    /// Adds so many chains of schedules, each with one fault more than the one before, from one to five. The faults are drawn at random,
    /// the same ones each time.
    ///
    /// What needs a run of bad luck is found only by these. Your [`check`](Self::check) has to allow for it: a message whose lease lapses
    /// a fourth time becomes a dead letter.
    pub fn chains(mut self, chains: usize) -> Self {
        self.chains = chains;
        self
    }

    /// Runs only the schedule with these faults, as a violation tells them: step number (from 1) and fault, in rising order.
    pub fn only(mut self, faults: impl IntoIterator<Item = (usize, Fault)>) -> Self {
        self.only = Some(Schedule(faults.into_iter().collect()));
        self
    }

    /// How long a schedule may take until nothing is left to do, in virtual time (default: 24 h).
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The store that keeps the records of one schedule, in place of a [`MemoryStore`]: to test a store of your own.
    pub fn store<S: Store>(mut self, store: impl Fn() -> S + 'a) -> Self {
        self.store = Box::new(move || Arc::new(store()));
        self
    }

    /// What each process has between it and the queues: to test how processes bear a broker that does otherwise.
    pub fn broker<B: Broker>(mut self, broker: impl Fn(MemoryBroker) -> B + 'a) -> Self {
        self.broker = Box::new(move |queues| Arc::new(broker(queues)));
        self
    }
}

impl fmt::Debug for CrashTest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashTest")
            .field("processes", &self.processes)
            .field("most_pairs", &self.most_pairs)
            .field("chains", &self.chains)
            .field("only", &self.only)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}
