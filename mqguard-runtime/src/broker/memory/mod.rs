//! The embedded broker: RabbitMQ's observable behaviour in this process, on tokio's clock.
//!
//! It is what runs without configuration, and what tests run on. Everything in it ends with the process.

mod clock;
mod death;
mod queue;
mod routing;
mod state;
mod subscription;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::Instant;

use self::clock::Clock;
use self::state::State;
use self::subscription::MemorySubscription;
use super::contract::{Address, Broker, BrokerError, ConsumeRequest, PublishError, Subscription};
use super::message::Message;
use super::topology::{DeclareMode, Topology};

/// The embedded broker. Clones share one broker, and the connection to it.
#[derive(Clone)]
pub struct MemoryBroker {
    shared: Arc<Shared>,
    clock: Clock,
    /// Which one its subscriptions are ended with.
    connection: u64,
}

struct Shared {
    state: Mutex<State>,
    /// Told when the earliest expiry may have changed, and when the broker is gone.
    expiry: Arc<Notify>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.expiry.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryBroker {
    /// An empty broker.
    #[must_use]
    pub fn new() -> Self {
        let clock = Clock::start();
        let shared = Arc::new(Shared { state: Mutex::new(State::new(clock)), expiry: Arc::default() });
        Self { shared, clock, connection: 0 }
    }

    /// How many messages are ready in a queue; 0 for a queue that does not exist.
    #[must_use]
    pub fn depth(&self, queue: &str) -> usize {
        self.shared.lock().queue(queue).map_or(0, |queue| queue.ready.len())
    }

    /// How many messages of a queue are delivered and unsettled.
    #[must_use]
    pub fn unsettled(&self, queue: &str) -> usize {
        self.shared.lock().unsettled(queue)
    }

    /// The messages that are ready in a queue, oldest first.
    #[must_use]
    pub fn messages(&self, queue: &str) -> Vec<Message> {
        let state = self.shared.lock();
        state
            .queue(queue)
            .map(|queue| queue.ready.iter().map(|entry| Message::clone(&entry.message)).collect())
            .unwrap_or_default()
    }

    /// The names of all queues, sorted.
    #[must_use]
    pub fn queues(&self) -> Vec<String> {
        self.shared.lock().queue_names()
    }

    /// Removes a queue with what is in it, as an operator might. Its subscriptions end.
    pub fn delete_queue(&self, queue: &str) {
        self.shared.lock().delete_queue(queue);
    }

    /// Ends every subscription as a lost connection does: what was unsettled is handed back.
    pub fn cut_connections(&self) {
        self.shared.lock().end_all();
    }

    /// The same broker, by a connection of its own: what one process has, beside others.
    #[must_use]
    pub fn connect(&self) -> Self {
        let connection = self.shared.lock().connect();
        Self { connection, ..self.clone() }
    }

    /// Ends the subscriptions of this connection alone, as [`cut_connections`](Self::cut_connections) does of all.
    pub fn cut_connection(&self) {
        self.shared.lock().end_connection(self.connection);
    }

    /// Makes the broker unreachable, or reachable again. Going away cuts all connections; what it holds stays.
    pub fn set_available(&self, available: bool) {
        let mut state = self.shared.lock();
        state.available = available;
        if !available {
            state.end_all();
        }
    }

    /// Starts the task that expires messages and queues, once.
    fn watch_expiry(&self) {
        if !std::mem::replace(&mut self.shared.lock().expiry_watched, true) {
            tokio::spawn(expire(Arc::downgrade(&self.shared)));
        }
    }
}

/// Expires messages and queues when they are due. Ends when the broker is dropped: nothing of it is held while waiting.
async fn expire(shared: std::sync::Weak<Shared>) {
    while let Some(strong) = shared.upgrade() {
        let due = strong.lock().expire(Instant::now());
        let changed = Arc::clone(&strong.expiry);
        drop(strong);
        match due {
            Some(due) => drop(tokio::time::timeout_at(due, changed.notified()).await),
            None => changed.notified().await,
        }
    }
}

impl Default for MemoryBroker {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for MemoryBroker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryBroker").field("queues", &self.queues()).finish()
    }
}

#[async_trait]
impl Broker for MemoryBroker {
    async fn declare(&self, topology: &Topology, mode: DeclareMode) -> Result<(), BrokerError> {
        self.watch_expiry();
        let result = self.shared.lock().declare(topology, mode, Instant::now());
        self.shared.expiry.notify_one();
        result
    }

    async fn consume(&self, request: ConsumeRequest) -> Result<Box<dyn Subscription>, BrokerError> {
        self.watch_expiry();
        let (id, wake) = self.shared.lock().subscribe(self.connection, &request)?;
        self.shared.expiry.notify_one();
        Ok(Box::new(MemorySubscription::new(Arc::clone(&self.shared), id, wake)))
    }

    async fn publish(&self, address: &Address, message: &Message) -> Result<(), PublishError> {
        self.watch_expiry();
        let result = self.shared.lock().publish(address, message, Instant::now());
        self.shared.expiry.notify_one();
        result
    }

    async fn is_empty(&self, queue: &str) -> Result<bool, BrokerError> {
        let state = self.shared.lock();
        state.reachable()?;
        match state.queue(queue) {
            Some(queue) => Ok(queue.ready.is_empty()),
            None => Err(BrokerError::Missing { what: "queue", name: queue.to_owned() }),
        }
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        self.shared.lock().reachable()
    }

    async fn close(&self) {}

    fn frame_max(&self) -> usize {
        131_072
    }

    fn now(&self) -> SystemTime {
        self.clock.at(Instant::now())
    }

    fn is_embedded(&self) -> bool {
        true
    }
}
