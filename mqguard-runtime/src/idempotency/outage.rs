//! The store is away, and messages run without it (`on_store_down = "run"`).

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::contract::StoreError;

/// Whether a consumer goes without its store at the moment. While it does nothing is asked of the store but whether it is back, so that
/// no message waits for an answer that does not come.
pub(crate) struct Outage {
    queue: &'static str,
    why: watch::Sender<Option<StoreError>>,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    last: Option<Instant>,
    /// Since the last line of the log.
    untold: u64,
    /// Since the outage began.
    total: u64,
}

/// How long a store may take to answer when messages can do without.
const PATIENCE: Duration = Duration::from_secs(2);

/// For how long it is tried again to record what became of a claimed message, before it ends without that.
pub(crate) const RECORD_PATIENCE: Duration = Duration::from_secs(5);

/// The log names a message at most this often; the others are counted. Events tell of each.
const TELL_EVERY: Duration = Duration::from_secs(1);

impl Outage {
    pub(crate) fn new(queue: &'static str) -> Self {
        Self { queue, why: watch::Sender::default(), told: Mutex::default() }
    }

    /// Why it goes without the store now.
    pub(crate) fn why(&self) -> Option<StoreError> {
        self.why.borrow().clone()
    }

    pub(crate) fn is_on(&self) -> bool {
        self.why.borrow().is_some()
    }

    /// The store could not answer.
    pub(crate) fn begin(&self, error: &StoreError) {
        self.why.send_if_modified(|why| {
            let begins = why.is_none();
            why.get_or_insert_with(|| error.clone());
            begins
        });
    }

    /// Waits until it goes without the store, and says why.
    pub(crate) async fn begun(&self) -> StoreError {
        let mut why = self.why.subscribe();
        match why.wait_for(Option::is_some).await.map(|why| why.clone()) {
            Ok(Some(error)) => error,
            // The sender is this one's own.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// The store answers again.
    pub(crate) fn end(&self) {
        if self.why.send_replace(None).is_none() {
            return;
        }
        let Told { total, .. } = std::mem::take(&mut *self.told());
        if total > 0 {
            tracing::warn!(queue = self.queue, "the store is back; {total} messages ran, or ended, without it");
        }
    }

    /// Logs what a message does without the store, unless another was named just now.
    pub(crate) fn tell(&self, message_id: Option<&str>, what: fmt::Arguments<'_>) {
        let mut told = self.told();
        told.total += 1;
        if told.last.is_some_and(|last| last.elapsed() < TELL_EVERY) {
            told.untold += 1;
            return;
        }
        told.last = Some(Instant::now());
        let others = match std::mem::take(&mut told.untold) {
            0 => String::new(),
            untold => format!(" (and {untold} others since the last line like this)"),
        };
        drop(told);
        tracing::warn!(queue = self.queue, message_id, "{what}{others}");
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer of the store, or that there is none in time: a frozen server answers nothing at all.
pub(super) async fn in_time<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout(PATIENCE, answer).await.unwrap_or_else(|_| Err(late(PATIENCE)))
}

pub(super) fn late(patience: Duration) -> StoreError {
    StoreError::Unavailable(format!("no answer within {} s", patience.as_secs()))
}
