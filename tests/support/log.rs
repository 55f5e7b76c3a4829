//! What handlers did and what observers were told, each with its time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mqguard::{Attempt, Context, ErrorText, Event, EventKind, Guard, Message, Origin, Reason};
use tokio::sync::watch;
use tokio::time::Instant;

/// Clones share one log.
#[derive(Clone)]
pub(crate) struct Log(Arc<Inner>);

struct Inner {
    started: Instant,
    entries: Mutex<Entries>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Entries {
    runs: Vec<Run>,
    seen: Vec<Seen>,
}

/// A run of a handler.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) at: Duration,
    pub(crate) attempt: Attempt,
    pub(crate) message: Message,
    pub(crate) origin: Origin,
}

/// Something that an observer was told.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) consumer: &'static str,
    pub(crate) id: Option<String>,
    pub(crate) at: Duration,
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    Processed,
    Skipped,
    Retried { delay: Duration, counted: bool, error: ErrorText },
    DeadLettered { reason: Reason, error: ErrorText },
    Other(String),
}

/// No test waits longer than this, by the paused clock.
const LIMIT: Duration = Duration::from_secs(40 * 24 * 3600);

impl Log {
    pub(crate) fn new() -> Self {
        let inner = Inner { started: Instant::now(), entries: Mutex::default(), changed: watch::channel(()).0 };
        Self(Arc::new(inner))
    }

    /// A guard that writes to this log and whose handlers have it as `State<Log>`.
    pub(crate) fn attach(&self, guard: Guard) -> Guard {
        let log = self.clone();
        guard.state(self.clone()).observe(move |event| log.see(event))
    }

    pub(crate) fn now(&self) -> Duration {
        self.0.started.elapsed()
    }

    pub(crate) fn ran(&self, name: &str, cx: &Context) {
        let (message, origin) = (cx.message().clone(), cx.origin().clone());
        let run = Run { name: name.to_owned(), at: self.now(), attempt: cx.attempt(), message, origin };
        self.change(|entries| entries.runs.push(run));
    }

    fn see(&self, event: &Event<'_>) {
        let what = match event.kind {
            EventKind::Processed { .. } => What::Processed,
            EventKind::Skipped => What::Skipped,
            EventKind::Retried { delay, counted, error } => What::Retried { delay, counted, error: error.clone() },
            EventKind::DeadLettered { reason, error } => What::DeadLettered { reason: reason.clone(), error: error.clone() },
            other => What::Other(format!("{other:?}")),
        };
        let seen = Seen { consumer: event.consumer, id: event.message_id.map(str::to_owned), at: self.now(), what };
        self.change(|entries| entries.seen.push(seen));
    }

    fn change(&self, change: impl FnOnce(&mut Entries)) {
        change(&mut self.0.entries.lock().expect("no test panics while it writes to the log"));
        self.0.changed.send_replace(());
    }

    fn read<T>(&self, read: impl FnOnce(&Entries) -> T) -> T {
        read(&self.0.entries.lock().expect("no test panics while it writes to the log"))
    }

    /// Waits until the log fulfils a condition.
    pub(crate) async fn until(&self, condition: impl Fn(&Self) -> bool) {
        let mut changed = self.0.changed.subscribe();
        let fulfilled = async {
            while !condition(self) {
                changed.changed().await.expect("the log is there");
            }
        };
        if tokio::time::timeout(LIMIT, fulfilled).await.is_err() {
            panic!("what the test waits for did not happen; the log: {:?}", self.all());
        }
    }

    pub(crate) fn runs(&self) -> Vec<Run> {
        self.read(|entries| entries.runs.clone())
    }

    pub(crate) fn runs_of(&self, name: &str) -> Vec<Run> {
        self.read(|entries| entries.runs.iter().filter(|run| run.name == name).cloned().collect())
    }

    pub(crate) fn count(&self) -> usize {
        self.read(|entries| entries.runs.len())
    }

    /// When the runs of this name began.
    pub(crate) fn times(&self, name: &str) -> Vec<Duration> {
        self.read(|entries| entries.runs.iter().filter(|run| run.name == name).map(|run| run.at).collect())
    }

    /// The same in whole seconds; each has to be one.
    pub(crate) fn seconds(&self, name: &str) -> Vec<u64> {
        let whole = |at: Duration| {
            assert_eq!(at.subsec_nanos(), 0, "a run of {name} at {at:?}");
            at.as_secs()
        };
        self.times(name).into_iter().map(whole).collect()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.read(|entries| entries.seen.clone())
    }

    pub(crate) fn seen_of(&self, id: &str) -> Vec<What> {
        let of = |seen: &&Seen| seen.id.as_deref() == Some(id);
        self.read(|entries| entries.seen.iter().filter(of).map(|seen| seen.what.clone()).collect())
    }

    /// How many messages were dead-lettered.
    pub(crate) fn letters(&self) -> usize {
        let is_letter = |seen: &&Seen| matches!(seen.what, What::DeadLettered { .. });
        self.read(|entries| entries.seen.iter().filter(is_letter).count())
    }

    pub(crate) fn processed(&self) -> usize {
        self.read(|entries| entries.seen.iter().filter(|seen| seen.what == What::Processed).count())
    }

    /// Whether the message `id` is processed, skipped or a letter.
    pub(crate) fn ended(&self, id: &str) -> bool {
        self.end_of(id).is_some()
    }

    /// When the message `id` ended.
    pub(crate) fn end_of(&self, id: &str) -> Option<Duration> {
        let end = |seen: &&Seen| {
            let is_end = matches!(seen.what, What::Processed | What::Skipped | What::DeadLettered { .. });
            is_end && seen.id.as_deref() == Some(id)
        };
        self.read(|entries| entries.seen.iter().find(end).map(|seen| seen.at))
    }

    /// The messages that the runs of this name got.
    pub(crate) fn messages(&self, name: &str) -> Vec<Message> {
        self.runs_of(name).into_iter().map(|run| run.message).collect()
    }

    fn all(&self) -> (Vec<Run>, Vec<Seen>) {
        let last = |length: usize| length.saturating_sub(20);
        self.read(|entries| {
            (entries.runs[last(entries.runs.len())..].to_vec(), entries.seen[last(entries.seen.len())..].to_vec())
        })
    }
}
