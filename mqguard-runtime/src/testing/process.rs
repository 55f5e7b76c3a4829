use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::broker::{Broker, MemoryBroker};
use crate::stop::Stop;

/// One process: what is done in its name has no effect on the world once it is dead.
pub(super) struct Process {
    /// From 1.
    pub(super) number: u32,
    /// The way to the queues.
    pub(super) broker: Arc<dyn Broker>,
    connection: MemoryBroker,
    dead: CancellationToken,
    stop: OnceLock<Stop>,
    subscriptions: AtomicUsize,
    frozen: AtomicUsize,
    event: Mutex<Option<&'static str>>,
}

impl Process {
    /// Reaches the queues by `broker`, on this connection.
    pub(super) fn new(number: u32, connection: MemoryBroker, broker: Arc<dyn Broker>) -> Self {
        Self {
            number,
            broker,
            connection,
            dead: CancellationToken::new(),
            stop: OnceLock::new(),
            subscriptions: AtomicUsize::new(0),
            frozen: AtomicUsize::new(0),
            event: Mutex::default(),
        }
    }

    /// Gives the means to end what runs in it. Dead already, it ends.
    pub(super) fn stop_by(&self, stop: Stop) {
        let stop = self.stop.get_or_init(|| stop);
        if self.is_dead() {
            end(stop);
        }
    }

    /// No process can be killed in the midst of a runtime; this comes to the same: it reaches nothing any more, and what runs in it is
    /// dropped where it next waits.
    pub(super) fn die(&self) {
        self.dead.cancel();
        if let Some(stop) = self.stop.get() {
            end(stop);
        }
    }

    /// It loses its connection: the broker takes the unsettled deliveries back.
    pub(super) fn cut(&self) {
        self.connection.cut_connection();
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.is_cancelled()
    }

    pub(super) async fn died(&self) {
        self.dead.cancelled().await;
    }

    pub(super) fn subscribed(&self) {
        self.subscriptions.fetch_add(1, Ordering::Relaxed);
    }

    /// How many subscriptions it has begun.
    pub(super) fn subscriptions(&self) -> usize {
        self.subscriptions.load(Ordering::Relaxed)
    }

    /// No lease is renewed while what this returns is kept.
    pub(super) fn freeze(&self) -> Frozen<'_> {
        self.frozen.fetch_add(1, Ordering::Relaxed);
        Frozen(self)
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Relaxed) > 0
    }

    /// Notes the event that is told right before a delivery is settled.
    pub(super) fn tell(&self, event: &'static str) {
        *self.event.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
    }

    /// The event that a settlement follows.
    pub(super) fn told(&self) -> Option<&'static str> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn end(stop: &Stop) {
    stop.drain.cancel();
    stop.force.cancel();
}

/// A call that takes longer than the lease.
pub(super) struct Frozen<'a>(&'a Process);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.0.frozen.fetch_sub(1, Ordering::Relaxed);
    }
}
