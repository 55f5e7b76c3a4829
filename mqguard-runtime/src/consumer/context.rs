use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::extract::States;
use crate::broker::{Delivery, Message};
use crate::idempotency::Session;
use crate::wire;

/// What a run knows of its delivery. Cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    message: Arc<Message>,
    origin: Origin,
    attempt: Attempt,
    redelivered: bool,
    states: Arc<States>,
    effects: Mutex<Vec<Effect>>,
    session: Option<Session>,
}

/// Where a message came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The queue that it was taken from.
    pub queue: &'static str,
    /// The exchange that it was first published to; empty for the default exchange.
    pub exchange: String,
    /// The routing key that it was first published with.
    pub routing_key: String,
}

impl Origin {
    /// A copy's headers tell where its message first came from.
    pub(crate) fn of(delivery: &Delivery, queue: &'static str) -> Self {
        let headers = &delivery.message.headers;
        let noted = headers.text(wire::EXCHANGE).zip(headers.text(wire::ROUTING_KEY));
        let (exchange, routing_key) = noted.unwrap_or((&delivery.exchange, &delivery.routing_key));
        Self { queue, exchange: exchange.to_owned(), routing_key: routing_key.to_owned() }
    }
}

/// Which run of a message this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub struct Attempt {
    /// How often the message was replayed from the dead letters.
    pub generation: u32,
    /// Counted retries before this run: 0 in the first.
    pub retries: u32,
    /// Uncounted retries ([`Retry::Later`](crate::Retry::Later)) before this run.
    pub deferrals: u32,
    /// Counted retries that the policy allows.
    pub max: u32,
}

impl Attempt {
    /// Whether a retryable failure of this run is final.
    #[must_use]
    pub fn is_last(self) -> bool {
        self.retries >= self.max
    }
}

impl Context {
    pub(crate) fn new(
        message: Arc<Message>,
        origin: Origin,
        attempt: Attempt,
        redelivered: bool,
        states: Arc<States>,
        session: Option<Session>,
    ) -> Self {
        Self(Arc::new(Inner { message, origin, attempt, redelivered, states, effects: Mutex::default(), session }))
    }

    /// The run of a handler, which may go on in another thread after each `.await`: `#[consumer]` asks this of the function. When its future
    /// is not `Send` the compiler shows these bounds, with what stands behind them.
    #[allow(clippy::multiple_bound_locations)] // The line of the bound that fails has room for what to do.
    pub fn runs_on_any_thread<F: Future>(run: F) -> impl Future<Output = F::Output> + Send
    where
        F: Send, // drop the value before the `.await`, or use one that is `Send`: `Arc` for `Rc`, `tokio::sync::Mutex` for `Mutex`
    {
        run
    }

    /// The message as it came.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.0.message
    }

    /// The message id.
    #[must_use]
    pub fn message_id(&self) -> Option<&str> {
        self.0.message.properties.message_id.as_deref()
    }

    /// Where the message was first published to: a retry, which comes straight to the queue, tells the same as the first run.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Which run this is.
    #[must_use]
    pub fn attempt(&self) -> Attempt {
        self.0.attempt
    }

    /// Whether the message was delivered before and not settled: an earlier run may have been cut short.
    #[must_use]
    pub fn redelivered(&self) -> bool {
        self.0.redelivered
    }

    /// The side effects staged by this run.
    #[must_use]
    pub fn effects(&self) -> Effects {
        Effects(Arc::clone(&self.0))
    }

    /// Where a parameter finds the transaction of this run; `None` when the consumer is not `transactional`.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        self.0.session.clone()
    }

    pub(crate) fn states(&self) -> &States {
        &self.0.states
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("message_id", &self.message_id())
            .field("origin", self.origin())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}

type Effect = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Side effects that a run stages and that happen only once it has succeeded: mails, pushes, cache invalidations.
///
/// They run in order after the success is recorded and before the message is acknowledged, each for as long as a run may take, so at
/// most once: a failed or cancelled run drops them, and a process that dies in between loses them. What must not be lost is written in
/// the handler itself.
#[derive(Clone)]
pub struct Effects(Arc<Inner>);

impl Effects {
    /// Stages an effect.
    pub fn after_success(&self, effect: impl Future<Output = ()> + Send + 'static) {
        self.staged().push(Box::pin(effect));
    }

    /// Takes the staged effects out.
    pub(crate) fn take(&self) -> Vec<Effect> {
        std::mem::take(&mut *self.staged())
    }

    fn staged(&self) -> MutexGuard<'_, Vec<Effect>> {
        self.0.effects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Effects({} staged)", self.staged().len())
    }
}
