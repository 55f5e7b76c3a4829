//! What has happened so far.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mqguard::{Event, EventKind, Reason};
use tokio::sync::watch;

use super::input::{EXHAUSTED, NOTHING_TO_CHARGE, Order, Totals};

/// Counts what the handler charges and what the guard tells. Clones share the counts.
#[derive(Clone)]
pub struct Tally {
    counts: Arc<Mutex<Counts>>,
    ledger: Option<Arc<File>>,
    changed: watch::Sender<()>,
}

#[derive(Clone, Default)]
pub struct Counts {
    pub published: u64,
    pub repeats: u64,
    pub totals: Totals,
    pub duplicates: u64,
    pub retries: u64,
    /// The messages that have ended, in success or as dead letters.
    ended: HashSet<String>,
}

impl Counts {
    pub fn ended(&self) -> u64 {
        self.ended.len() as u64
    }
}

impl Tally {
    /// Counts from zero; appends charges to the ledger, if there is one.
    pub fn new(ledger: Option<&Path>) -> Result<Self, String> {
        let open = |path: &Path| File::options().create(true).append(true).open(path);
        let ledger =
            ledger.map(|path| open(path).map(Arc::new).map_err(|error| format!("{}: {error}", path.display()))).transpose()?;
        Ok(Self { counts: Arc::default(), ledger, changed: watch::Sender::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn counts(&self) -> Counts {
        self.lock().clone()
    }

    /// The effect of the handler: charges an order.
    pub fn charge(&self, order: &Order) -> std::io::Result<()> {
        if let Some(ledger) = &self.ledger {
            // In one piece: several processes may share the file.
            (&**ledger).write_all(format!("{},{},{}\n", order.order_id, order.cds, order.amount_cents).as_bytes())?;
        }
        let mut counts = self.lock();
        counts.totals.cds += order.cds;
        counts.totals.amount_cents += order.amount_cents;
        Ok(())
    }

    pub fn published(&self, repeat: bool) {
        let mut counts = self.lock();
        if repeat {
            counts.repeats += 1;
        } else {
            counts.published += 1;
        }
        drop(counts);
        self.changed.send_replace(());
    }

    /// Counts an event of the guard.
    pub fn count(&self, event: &Event<'_>) {
        let id = event.message_id.unwrap_or_default();
        let mut counts = self.lock();
        match event.kind {
            EventKind::Processed { .. } => {
                counts.totals.processed += 1;
                counts.ended.insert(id.to_owned());
            }
            EventKind::DeadLettered { reason, .. } => {
                let name = if *reason == Reason::Fatal { NOTHING_TO_CHARGE } else { EXHAUSTED };
                *counts.totals.dead_letters.entry(name).or_default() += 1;
                counts.ended.insert(id.to_owned());
            }
            EventKind::Duplicate | EventKind::Stale => counts.duplicates += 1,
            EventKind::Retried { .. } => counts.retries += 1,
            _ => return,
        }
        drop(counts);
        self.changed.send_replace(());
    }

    /// Waits until the counts are as `enough` says.
    pub async fn wait_for(&self, enough: impl Fn(&Counts) -> bool) {
        let mut changed = self.changed.subscribe();
        while !enough(&self.lock()) {
            // The sender lives as long as `self`.
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until nothing has happened for `quiet`.
    pub async fn wait_until_quiet(&self, quiet: std::time::Duration) {
        let mut changed = self.changed.subscribe();
        while tokio::time::timeout(quiet, changed.changed()).await.is_ok() {}
    }
}
