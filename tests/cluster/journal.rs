//! What was published, what the handlers did, and what became of it, each with its time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use mqguard::{Event, EventKind};
use tokio::sync::watch;

/// Clones share one journal.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Inner>);

struct Inner {
    entries: Mutex<BTreeMap<u32, Entry>>,
    changed: watch::Sender<()>,
}

/// What is known of a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    pub(crate) published: Option<Instant>,
    pub(crate) runs: u32,
    pub(crate) successes: u32,
    /// When its success was recorded.
    pub(crate) processed: Option<Instant>,
    pub(crate) letters: u32,
    /// Deliveries that were recognised as done.
    pub(crate) duplicates: u32,
    /// Runs that began after its success was recorded.
    pub(crate) too_late: u32,
}

impl Entry {
    pub(crate) fn has_ended(&self) -> bool {
        self.processed.is_some() || self.letters > 0
    }
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner { entries: Mutex::default(), changed: watch::channel(()).0 }))
    }

    pub(crate) fn published(&self, number: u32) {
        self.change(number, |entry| entry.published = Some(Instant::now()));
    }

    /// A run begins; which one of this message it is.
    pub(crate) fn run(&self, number: u32) -> u32 {
        self.change(number, |entry| {
            entry.runs += 1;
            entry.too_late += u32::from(entry.processed.is_some());
            entry.runs
        })
    }

    pub(crate) fn succeeded(&self, number: u32) {
        self.change(number, |entry| entry.successes += 1);
    }

    pub(crate) fn see(&self, event: &Event<'_>) {
        let Some(number) = event.message_id.and_then(|id| id.strip_prefix("m-")?.parse().ok()) else { return };
        self.change(number, |entry| match event.kind {
            EventKind::Processed { .. } => entry.processed = Some(Instant::now()),
            EventKind::DeadLettered { .. } => entry.letters += 1,
            EventKind::Duplicate => entry.duplicates += 1,
            _ => {}
        });
    }

    fn change<T>(&self, number: u32, change: impl FnOnce(&mut Entry) -> T) -> T {
        let result = change(self.0.entries.lock().expect("nobody panics with it").entry(number).or_default());
        self.0.changed.send_replace(());
        result
    }

    pub(crate) fn entries(&self) -> BTreeMap<u32, Entry> {
        self.0.entries.lock().expect("nobody panics with it").clone()
    }

    /// When the first message was processed that was published after this.
    pub(crate) async fn processed_after(&self, fault: Instant) -> Instant {
        let mut changed = self.0.changed.subscribe();
        loop {
            let after = |entry: &Entry| entry.processed.filter(|_| entry.published.is_some_and(|published| published > fault));
            // Of those that were published last.
            let found = self.0.entries.lock().expect("nobody panics with it").values().rev().take(5_000).filter_map(after).min();
            match found {
                Some(processed) => return processed,
                None => changed.changed().await.expect("it is there"),
            }
        }
    }

    /// Waits until each of these messages has ended.
    pub(crate) async fn ended(&self, count: u32) {
        let mut changed = self.0.changed.subscribe();
        let mut open: Vec<u32> = (0..count).collect();
        loop {
            {
                let entries = self.0.entries.lock().expect("nobody panics with it");
                open.retain(|number| !entries.get(number).is_some_and(Entry::has_ended));
            }
            if open.is_empty() {
                return;
            }
            changed.changed().await.expect("it is there");
        }
    }
}
