use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::fault::{Fault, Schedule};
use super::known::{Known, Name};
use super::process::Process;
use super::step::{StepKind, TraceLine};
use super::witness::Witness;
use crate::broker::{Address, MemoryBroker, Message, Topology};
use crate::idempotency::Store;
use crate::retry::Progress;

/// What outlives processes: the queues, the records, and what was seen of both.
pub(super) struct World {
    pub(super) queues: MemoryBroker,
    pub(super) store: Arc<dyn Store>,
    pub(super) known: Known,
    pub(super) changed: Notify,
    began: Instant,
    /// How many processes there are at the same time.
    pub(super) places: usize,
    /// The last process of each place.
    processes: Mutex<BTreeMap<usize, Arc<Process>>>,
    book: Mutex<Book>,
}

/// What was seen.
#[derive(Default)]
pub(super) struct Book {
    plan: Schedule,
    steps: usize,
    pub(super) trace: Vec<TraceLine>,
    pub(super) witness: Witness,
    /// What was published, each with the message ids that it came under.
    pub(super) published: HashMap<Name, HashSet<String>>,
    pub(super) all_is_published: bool,
    pub(super) acks: Vec<Ack>,
    holds: HashMap<String, (String, Duration)>,
}

/// An acknowledgement that had an effect.
pub(super) struct Ack {
    pub(super) queue: String,
    pub(super) id: String,
    /// How often the message was replayed before.
    pub(super) generation: u32,
    /// The event told before.
    pub(super) event: Option<&'static str>,
}

/// A step that has begun.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    line: usize,
    pub(super) fault: Option<Fault>,
}

impl World {
    pub(super) fn new(queues: MemoryBroker, store: Arc<dyn Store>, known: Known, plan: Schedule, places: usize) -> Self {
        let book = Mutex::new(Book { plan, ..Book::default() });
        Self { queues, store, known, changed: Notify::new(), began: Instant::now(), places, processes: Mutex::default(), book }
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Virtual time since it began.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Counts a step, and tells what goes wrong at it.
    pub(super) fn begin(&self, process: &Process, kind: StepKind, what: String) -> Begun {
        let at = self.now();
        let mut book = self.book();
        book.steps += 1;
        let step = book.steps;
        let fault = book.plan.at(step);
        book.trace.push(TraceLine { step: Some((step, kind)), at, process: process.number, what, outcome: String::new(), fault });
        Begun { line: book.trace.len() - 1, fault }
    }

    /// What came of a step.
    pub(super) fn end(&self, begun: Begun, outcome: impl Into<String>) {
        if let Some(line) = self.book().trace.get_mut(begun.line) {
            line.outcome = outcome.into();
        }
        self.changed.notify_waiters();
    }

    /// Adds to the trace what is not a step.
    pub(super) fn note(&self, process: &Process, what: String) {
        let at = self.now();
        let line = TraceLine { step: None, at, process: process.number, what, outcome: String::new(), fault: None };
        self.book().trace.push(line);
    }

    /// How many steps there were.
    pub(super) fn steps(&self) -> usize {
        self.book().steps
    }

    /// The process dies here and now, and the broker notices.
    pub(super) fn kill(&self, process: &Process) {
        process.die();
        process.cut();
        self.changed.notify_waiters();
    }

    /// Keeps where the hold queues of a topology lead, and after which delay.
    pub(super) fn declared(&self, topology: &Topology) {
        let mut book = self.book();
        for queue in &topology.queues {
            if let (Some(ttl), Some(target)) = (queue.message_ttl, &queue.dead_letters) {
                book.holds.insert(queue.name.clone(), (target.routing_key.clone(), ttl));
            }
        }
    }

    /// A process has put a message into a queue.
    pub(super) fn stored(&self, address: &Address, message: &Message) {
        let Some((queue, delay)) = self.book().holds.get(&address.routing_key).cloned() else { return };
        let Some(Name::Identity(identity)) = self.known.name(&queue, message) else { return };
        let progress = Progress::read(&message.headers);
        if progress.busy == 0 {
            let due = Instant::now() + delay;
            self.book().witness.put_off(&identity, progress.turn(), progress.deferrals, due);
        }
    }

    /// The longest lease of the consumers.
    pub(super) fn lease(&self) -> Duration {
        self.known.specs().filter_map(|spec| spec.idempotent).map(|idempotent| idempotent.lease).max().unwrap_or_default()
    }

    /// A process takes this place.
    pub(super) fn started(&self, place: usize, process: &Arc<Process>) {
        self.processes().insert(place, Arc::clone(process));
    }

    fn processes(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is left to do: all is published, the processes consume, and nothing waits anywhere.
    pub(super) async fn at_rest(&self) {
        loop {
            self.until(Self::is_at_rest).await;
            // What the last settlement has set off comes to its end first.
            let steps = self.steps();
            tokio::time::sleep(SETTLING).await;
            if self.is_at_rest() && self.steps() == steps {
                return;
            }
        }
    }

    /// Waits until something holds.
    pub(super) async fn until(&self, holds: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(self) {
                return;
            }
            changed.await;
        }
    }

    /// What is left to do, in words.
    pub(super) fn left_over(&self) -> String {
        if !self.book().all_is_published {
            return "`publish` has not ended".into();
        }
        let count = |queue: String| (self.queues.depth(&queue), self.queues.unsettled(&queue), queue);
        let full = self.queues.queues().into_iter().map(count).filter(|(ready, out, _)| ready + out > 0);
        let texts: Vec<String> = full.map(|(ready, out, queue)| format!("{queue} has {ready} ready, {out} unsettled")).collect();
        if texts.is_empty() { "the consumers do not consume".into() } else { texts.join("; ") }
    }

    /// Whether all processes consume.
    pub(super) fn is_consumed(&self) -> bool {
        let consumes = |process: &&Arc<Process>| !process.is_dead() && process.subscriptions() >= self.known.len();
        self.processes().values().filter(consumes).count() == self.places
    }

    fn is_at_rest(&self) -> bool {
        self.book().all_is_published && self.is_consumed() && self.known.is_at_rest(&self.queues)
    }
}

const SETTLING: Duration = Duration::from_millis(100);

/// How often a message, or what a letter is about, was replayed before.
pub(super) fn generation_of(message: &Message) -> u32 {
    Progress::read(&message.headers).generation
}

/// A message's id, as a trace tells it.
pub(super) fn id_of(message: &Message) -> &str {
    message.properties.message_id.as_deref().unwrap_or("(no id)")
}
