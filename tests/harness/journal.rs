use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use mqguard::{Attempt, Context, Event, EventKind, Reason};
use tokio::sync::Notify;
use tokio::time::Instant;

/// What handlers did and what observers were told, with the virtual times.
#[derive(Clone)]
pub struct Journal(Arc<Inner>);

struct Inner {
    started: Instant,
    book: Mutex<Book>,
    changed: Notify,
}

#[derive(Debug, Default, Clone)]
pub struct Book {
    pub runs: Vec<Run>,
    pub events: Vec<Happened>,
}

/// One run of a handler.
#[derive(Debug, Clone)]
pub struct Run {
    pub id: String,
    /// Which run of this id it is, from 1.
    pub n: u32,
    pub attempt: Attempt,
    pub redelivered: bool,
    pub process: u32,
    pub began: Duration,
    pub ended: Option<(Duration, End)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Success,
    Failure,
    /// Dropped while it ran.
    Cancelled,
}

/// An event, kept.
#[derive(Debug, Clone)]
pub struct Happened {
    pub at: Duration,
    pub queue: &'static str,
    pub id: String,
    pub attempt: Attempt,
    /// `processed`, `duplicate`, `busy` and so on.
    pub what: &'static str,
    /// Of a dead letter.
    pub reason: Option<Reason>,
}

/// Notes how a run ended, also when it is dropped.
pub struct Entry {
    journal: Journal,
    index: usize,
    end: End,
}

impl Entry {
    pub fn end(&mut self, success: bool) {
        self.end = if success { End::Success } else { End::Failure };
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let at = self.journal.now();
        self.journal.lock().runs[self.index].ended = Some((at, self.end));
        self.journal.0.changed.notify_waiters();
    }
}

impl Journal {
    pub fn new() -> Self {
        Self(Arc::new(Inner { started: Instant::now(), book: Mutex::default(), changed: Notify::new() }))
    }

    pub fn now(&self) -> Duration {
        self.0.started.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap()
    }

    pub fn book(&self) -> Book {
        self.lock().clone()
    }

    pub fn begin(&self, cx: &Context, process: u32) -> (Run, Entry) {
        let id = cx.message_id().unwrap_or_default().to_owned();
        let mut book = self.lock();
        let n = 1 + u32::try_from(book.runs.iter().filter(|run| run.id == id).count()).unwrap();
        let (attempt, redelivered) = (cx.attempt(), cx.redelivered());
        let run = Run { id, n, attempt, redelivered, process, began: self.now(), ended: None };
        let index = book.runs.len();
        book.runs.push(run.clone());
        drop(book);
        self.0.changed.notify_waiters();
        (run, Entry { journal: self.clone(), index, end: End::Cancelled })
    }

    pub fn tell(&self, event: &Event<'_>) {
        let (what, reason) = match event.kind {
            EventKind::Processed { .. } => ("processed", None),
            EventKind::Skipped => ("skipped", None),
            EventKind::Duplicate => ("duplicate", None),
            EventKind::Conflict => ("conflict", None),
            EventKind::Stale => ("stale", None),
            EventKind::Busy { .. } => ("busy", None),
            EventKind::Retried { .. } => ("retried", None),
            EventKind::DeadLettered { reason, .. } => ("dead-lettered", Some(reason.clone())),
            EventKind::Unguarded { .. } => ("unguarded", None),
            EventKind::Returned => ("returned", None),
            _ => ("unknown", None),
        };
        let id = event.message_id.unwrap_or_default().to_owned();
        let happened = Happened { at: self.now(), queue: event.queue, id, attempt: event.attempt, what, reason };
        self.lock().events.push(happened);
        self.0.changed.notify_waiters();
    }

    pub async fn until(&self, what: &str, mut reached: impl FnMut(&Book) -> bool) {
        let wait = async {
            loop {
                let changed = self.0.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if reached(&self.lock()) {
                    return;
                }
                changed.await;
            }
        };
        let reached = tokio::time::timeout(Duration::from_secs(600), wait).await;
        assert!(reached.is_ok(), "within ten minutes it did not come to this: {what}\n{}", self.book());
    }
}

impl Book {
    pub fn runs_of(&self, id: &str) -> usize {
        self.runs.iter().filter(|run| run.id == id).count()
    }

    /// Runs that came to their end and succeeded: what a handler did stays done.
    pub fn effects(&self) -> usize {
        self.runs.iter().filter(|run| matches!(run.ended, Some((_, End::Success)))).count()
    }

    pub fn effects_of(&self, id: &str) -> usize {
        self.runs.iter().filter(|run| run.id == id && matches!(run.ended, Some((_, End::Success)))).count()
    }

    pub fn ends(&self) -> Vec<Option<End>> {
        self.runs.iter().map(|run| run.ended.map(|(_, end)| end)).collect()
    }

    pub fn count(&self, what: &str) -> usize {
        self.events.iter().filter(|event| event.what == what).count()
    }

    pub fn count_of(&self, id: &str, what: &str) -> usize {
        self.events.iter().filter(|event| event.id == id && event.what == what).count()
    }

    /// The most runs of one id at the same time.
    pub fn most_at_once(&self, id: &str) -> usize {
        let of: Vec<&Run> = self.runs.iter().filter(|run| run.id == id).collect();
        let runs_at = |run: &Run, at: Duration| run.began <= at && run.ended.is_none_or(|(end, _)| end > at);
        let beside = |n: usize| of.iter().enumerate().filter(|(m, run)| *m == n || runs_at(run, of[n].began)).count();
        (0..of.len()).map(beside).max().unwrap_or(0)
    }

    /// When the runs of an id began.
    pub fn began(&self, id: &str) -> Vec<Duration> {
        self.runs.iter().filter(|run| run.id == id).map(|run| run.began).collect()
    }
}

impl fmt::Display for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for run in &self.runs {
            let (id, n, attempt) = (&run.id, run.n, run.attempt.retries);
            writeln!(f, "run `{id}` no {n}, attempt {attempt}, process {}: {:?} to {:?}", run.process, run.began, run.ended)?;
        }
        self.events.iter().try_for_each(|event| {
            let Happened { at, queue, id, what, reason, .. } = event;
            writeln!(f, "{at:?} {queue} `{id}` {what} {}", reason.as_ref().map(ToString::to_string).unwrap_or_default())
        })
    }
}
