use std::sync::Arc;
use std::time::Duration;

use super::error::{ConfigError, Error, Result};
use super::running::{Running, start};
use super::stores::Stores;
use super::{check, url};
use crate::broker::{Broker, BrokerError, DeclareMode, MemoryBroker};
use crate::consumer::{Consumer, ConsumerSpec, Handler, IdempotentSpec, Of, States};
use crate::event::{Event, Observers};
use crate::idempotency::Store;
use crate::publish::Publisher;

/// Consumers, what they need, and the broker that they run on: built, then run.
///
/// Mistakes made while building are collected and told at start, all at once.
#[must_use = "a guard does nothing until it is run"]
pub struct Guard {
    pub(super) broker: Arc<dyn Broker>,
    pub(super) stores: Stores,
    pub(super) states: States,
    pub(super) consumers: Vec<Registered>,
    pub(super) observers: Observers,
    pub(super) mode: DeclareMode,
    pub(super) grace: Duration,
    pub(super) mistakes: Vec<ConfigError>,
}

/// A registered consumer.
#[derive(Clone)]
pub(super) struct Registered {
    pub(super) spec: &'static ConsumerSpec,
    pub(super) handler: Arc<dyn Handler>,
}

/// How long a shutdown waits for the handlers that run, when [`Guard::grace`] says nothing else: less than the 30 s after which
/// orchestrators kill.
const DEFAULT_GRACE: Duration = Duration::from_secs(25);

impl Guard {
    /// A guard on an embedded broker of its own.
    pub fn embedded() -> Self {
        Self::with_broker(MemoryBroker::new())
    }

    /// A guard on the broker of this URL: `memory://`, or `amqp://user:password@host:5672/vhost` (also a list of nodes).
    ///
    /// # Errors
    /// When the URL is malformed, or the build lacks what it names.
    pub fn connect(broker_url: &str) -> Result<Self> {
        Ok(Self::on(url::broker(broker_url)?))
    }

    /// A guard as the environment says: the broker of `MQGUARD_BROKER` (none: the embedded one), the stores of
    /// `MQGUARD_REDIS`, `MQGUARD_MYSQL`, `MQGUARD_POSTGRES` and `MQGUARD_SQLITE`.
    ///
    /// # Errors
    /// When a URL is malformed, or the build lacks what it names; the error names the variable, or both.
    pub fn from_env() -> Result<Self> {
        let mut mistakes = Vec::new();
        let mut stores = Vec::new();
        let broker = from_variable("MQGUARD_BROKER", url::broker).unwrap_or_else(|mistake| {
            mistakes.push(mistake);
            None
        });
        for kind in ["redis", "mysql", "postgres", "sqlite"] {
            let variable = format!("MQGUARD_{}", kind.to_ascii_uppercase());
            match from_variable(&variable, |value| store_of(kind, value)) {
                Ok(store) => stores.extend(store),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        if !mistakes.is_empty() {
            return Err(Error::Config(mistakes));
        }
        let mut guard = broker.map_or_else(
            || {
                tracing::warn!("MQGUARD_BROKER is not set: this is the embedded broker, whose messages end with the process");
                Self::embedded()
            },
            Self::on,
        );
        for (name, store) in stores {
            guard.stores.insert(name.to_owned(), store);
        }
        Ok(guard)
    }

    /// A guard on this broker.
    pub fn with_broker(broker: impl Broker) -> Self {
        Self::on(Arc::new(broker))
    }

    fn on(broker: Arc<dyn Broker>) -> Self {
        Self {
            broker,
            stores: Stores::default(),
            states: States::default(),
            consumers: Vec::new(),
            observers: Observers::default(),
            mode: DeclareMode::Declare,
            grace: DEFAULT_GRACE,
            mistakes: Vec::new(),
        }
    }

    /// Registers an annotated function: `.consumer::<process_order>()`.
    pub fn consumer<C: Consumer>(mut self /* name the function in the brackets: `.consumer::<process_order>()` */) -> Self {
        self.consumers.push(Registered { spec: const { &C::SPEC }, handler: Arc::new(Of::<C>::new()) });
        self
    }

    /// Adds the store of this URL (`redis://host:6379/0`) under the name that attributes use for its kind.
    pub fn store_url(mut self, store_url: &str) -> Self {
        match url::store(store_url) {
            Ok((name, store)) => self.add_store(name, store),
            Err(mistake) => self.mistakes.push(mistake),
        }
        self
    }

    /// Adds a store under a name that attributes use: `.store("redis", MemoryStore::new())` puts another in the place of Redis.
    pub fn store(mut self, name: &str, store: impl Store) -> Self {
        self.add_store(name, Arc::new(store));
        self
    }

    fn add_store(&mut self, name: &str, store: Arc<dyn Store>) {
        if self.stores.insert(name.to_owned(), store).is_some() {
            self.mistakes.push(ConfigError(format!(
                "the store `{name}` is given twice; it may be in the environment too, as MQGUARD_{}",
                name.to_ascii_uppercase()
            )));
        }
    }

    /// Makes a value available to handlers as `State<T>`.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        if self.states.insert(value) {
            let name = std::any::type_name::<T>();
            self.mistakes
                .push(ConfigError(format!("two values of the type `{name}` are given as state: wrap one in a type of its own")));
        }
        self
    }

    /// Has `observer` told of everything that happens to deliveries. It is called between receiving and settling: keep it short.
    pub fn observe(mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.observers.add(observer);
        self
    }

    /// What is done with queues and exchanges at start; by default they are declared.
    pub fn declare_mode(mut self, mode: DeclareMode) -> Self {
        self.mode = mode;
        self
    }

    /// How long a shutdown waits for handlers that run (default 25 s); what still runs then is handed back.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Publishes to this guard's broker. It works before, while and after the guard runs.
    pub fn publisher(&self) -> Publisher {
        Publisher::new(Arc::clone(&self.broker))
    }

    /// Declares everything that the registered consumers need on the broker, without consuming: for deployments, and for publishers that
    /// start first. Stores and state need not be there.
    ///
    /// # Errors
    /// Mistakes in the configuration, and what the broker says.
    pub async fn declare(&self) -> Result<()> {
        check::to_declare(self)?;
        for Registered { spec, .. } in &self.consumers {
            let in_consumer =
                |error: BrokerError| Error::Consumer { consumer: spec.name, queue: spec.queue, error: Box::new(error.into()) };
            self.broker.declare(&spec.topology(), self.mode).await.map_err(in_consumer)?;
        }
        Ok(())
    }

    /// Starts all consumers; returns once each has begun to consume. While the broker or a store cannot be reached this waits.
    ///
    /// # Errors
    /// Mistakes in the configuration, all of them; what the broker refuses, after the consumers that had begun are shut down.
    pub async fn start(self) -> Result<Running> {
        let running = self.launch()?;
        match running.ready().await {
            Ok(()) => Ok(running),
            Err(error) => running.shutdown().await.and(Err(error)),
        }
    }

    /// Runs until SIGINT, SIGTERM or a failure that does not pass by itself, then drains. A second signal ends the grace period: what
    /// still runs is handed back at once.
    ///
    /// A handler that blocks its thread cannot be stopped, and `#[tokio::main]` waits for its thread: block in
    /// [`tokio::task::spawn_blocking`].
    ///
    /// # Errors
    /// As [`start`](Self::start), and the failure that ended it.
    pub async fn run(self) -> Result<()> {
        let mut signals = StopSignals::listen()?;
        let running = self.launch()?;
        let end = tokio::select! {
            () = signals.next() => Ok(()),
            failure = running.failed() => failure,
        };
        end.and(running.shutdown_hurried_by(signals.next()).await)
    }

    pub(super) fn launch(mut self) -> Result<Running> {
        let embedded = self.broker.is_embedded();
        let idempotent: Vec<IdempotentSpec> = self.idempotent().collect();
        self.stores.stand_in(idempotent.iter().copied(), embedded);
        check::to_run(&self)?;
        self.stores.tell_warnings(idempotent.into_iter(), embedded);
        Ok(start(self))
    }

    /// What the registered consumers ask of stores.
    pub(super) fn idempotent(&self) -> impl Iterator<Item = IdempotentSpec> {
        self.consumers.iter().filter_map(|registered| registered.spec.idempotent)
    }
}

/// What the URL in an environment variable names; `None` when there is none.
fn from_variable<T>(name: &str, read: impl FnOnce(&str) -> Result<T, ConfigError>) -> Result<Option<T>, ConfigError> {
    let value = match std::env::var(name) {
        Ok(value) => value,
        Err(std::env::VarError::NotPresent) => return Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => return Err(ConfigError(format!("{name}: the value is not UTF-8"))),
    };
    if value.trim().is_empty() {
        return Ok(None);
    }
    read(&value).map(Some).map_err(|error| ConfigError(format!("{name}: {error}")))
}

/// The store of the variable that is named for its kind; the memory store can be in place of any.
fn store_of(kind: &'static str, value: &str) -> Result<(&'static str, Arc<dyn Store>), ConfigError> {
    match url::store(value)? {
        (name, store) if name == kind || name == "memory" => Ok((kind, store)),
        (name, _) => {
            let variable = format!("MQGUARD_{}", name.to_ascii_uppercase());
            Err(ConfigError(format!("this is the URL of a `{name}` store: put it into {variable}")))
        }
    }
}

/// The signals that end a process: SIGINT and SIGTERM, or Ctrl-C where there are none.
struct StopSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopSignals {
    fn listen() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! { _ = self.interrupt.recv() => {}, _ = self.terminate.recv() => {} }
    }
}

#[cfg(not(unix))]
impl StopSignals {
    fn listen() -> Result<Self> {
        Ok(Self {})
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queues = self.consumers.iter().map(|registered| registered.spec.queue);
        f.debug_struct("Guard").field("broker", &self.broker).field("queues", &queues.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
