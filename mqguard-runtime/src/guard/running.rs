use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::builder::{Guard, Registered};
use super::error::{Error, Result};
use super::purge::purge;
use crate::broker::{Broker, BrokerError};
use crate::consumer::{ConsumerError, ConsumerSpec, Courier, Isolation, Pipeline, Worker};
use crate::health::{Health, Status};
use crate::idempotency::Ledger;
use crate::publish::Publisher;
use crate::stop::Stop;

/// A guard that runs. Dropped without [`shutdown`](Self::shutdown), it drains in the background, within the grace period too.
#[derive(Debug)]
pub struct Running {
    broker: Arc<dyn Broker>,
    consumers: Vec<RunningConsumer>,
    pub(super) stop: Stop,
}

#[derive(Debug)]
struct RunningConsumer {
    spec: &'static ConsumerSpec,
    status: watch::Receiver<Status>,
    worker: JoinHandle<Result<(), ConsumerError>>,
}

/// Starts the workers of a guard whose configuration is right.
pub(super) fn start(guard: Guard) -> Running {
    let stop = Stop::default();
    let isolation = Isolation::default();
    let mut guard = guard;
    let registered = std::mem::take(&mut guard.consumers);
    guard.states.provide(Publisher::new(Arc::clone(&guard.broker)));
    let states = Arc::new(std::mem::take(&mut guard.states));
    let specs: Vec<_> = registered.iter().filter_map(|registered| registered.spec.idempotent).collect();
    let consumers = registered
        .into_iter()
        .map(|Registered { spec, handler }| {
            // The configuration was checked: each has its store.
            let store = |idempotent| guard.stores.find(&idempotent).ok().map(|store| (idempotent, Arc::clone(store)));
            let ledger = spec.idempotent.and_then(store).map(|(idempotent, store)| Ledger::new(idempotent, spec.queue, store));
            let pipeline = Pipeline {
                spec,
                handler,
                broker: Arc::clone(&guard.broker),
                ledger,
                courier: Courier::new(spec, Arc::clone(&guard.broker), guard.mode, stop.drain.clone()),
                states: Arc::clone(&states),
                observers: guard.observers.clone(),
                stop: stop.clone(),
                isolation: isolation.clone(),
                quarantined: Notify::new(),
                store_down: watch::Sender::default(),
            };
            let (sender, status) = watch::channel(Status::Starting);
            let worker = Worker::new(Arc::new(pipeline), guard.mode, sender);
            RunningConsumer { spec, status, worker: tokio::spawn(worker.run()) }
        })
        .collect();
    for store in guard.stores.to_purge(specs.into_iter()) {
        tokio::spawn(purge(store, stop.drain.clone()));
    }
    tokio::spawn(end_grace(stop.clone(), guard.grace));
    Running { broker: guard.broker, consumers, stop }
}

/// Gives the force signal when the grace period is over.
async fn end_grace(stop: Stop, grace: Duration) {
    stop.drain.cancelled().await;
    tracing::info!("shutting down: the handlers that run have {} to end", humantime::format_duration(grace));
    tokio::time::sleep(grace).await;
    stop.force.cancel();
}

impl Running {
    /// Publishes to the guard's broker.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher::new(Arc::clone(&self.broker))
    }

    /// The state of every consumer, as of now.
    #[must_use]
    pub fn health(&self) -> Health {
        let status = |consumer: &RunningConsumer| (consumer.spec.queue, consumer.status.borrow().clone());
        Health { consumers: self.consumers.iter().map(status).collect() }
    }

    /// Waits until every consumer has begun to consume, or one has failed for good.
    pub(super) async fn ready(&self) -> Result<()> {
        let all_consume = async {
            for consumer in &self.consumers {
                // The sender is gone when the worker has failed, which the other branch tells.
                drop(consumer.status.clone().wait_for(Status::is_healthy).await);
            }
        };
        tokio::select! {
            biased;
            failure = self.failed() => failure,
            () = all_consume => Ok(()),
        }
    }

    /// Waits until a consumer fails for good, and says why.
    ///
    /// # Errors
    /// Always: the failure.
    pub async fn failed(&self) -> Result<()> {
        let waits = self.consumers.iter().map(|consumer| Box::pin(failure(consumer.spec, consumer.status.clone())));
        let (error, ..) = futures_util::future::select_all(waits).await;
        Err(error)
    }

    /// Drains: takes nothing new, waits for the handlers that run for up to the grace period, hands the rest back, and closes.
    ///
    /// # Errors
    /// The failure that had ended a consumer before.
    pub async fn shutdown(mut self) -> Result<()> {
        self.stop.drain.cancel();
        let mut result = Ok(());
        for RunningConsumer { spec, worker, .. } in self.consumers.drain(..) {
            let ended = match worker.await {
                Ok(ended) => ended,
                Err(error) => Err(BrokerError::Unavailable(format!("the worker ended: {error}")).into()),
            };
            let in_consumer = |error| Error::Consumer { consumer: spec.name, queue: spec.queue, error: Box::new(error) };
            result = result.and(ended.map_err(in_consumer));
        }
        self.broker.close().await;
        result
    }

    /// Shuts down; what still runs when `hurry` completes is handed back at once.
    pub(super) async fn shutdown_hurried_by(self, hurry: impl Future<Output = ()>) -> Result<()> {
        let force = self.stop.force.clone();
        let mut end = std::pin::pin!(self.shutdown());
        tokio::select! {
            end = &mut end => return end,
            () = hurry => {
                tracing::warn!("told to end again: the handlers that still run are cancelled");
                force.cancel();
            }
        }
        end.await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.drain.cancel();
    }
}

/// Completes when the consumer fails; never when it ends otherwise.
async fn failure(spec: &'static ConsumerSpec, mut status: watch::Receiver<Status>) -> Error {
    let failed = status.wait_for(|status| matches!(status, Status::Failed { .. })).await.map(|status| status.clone());
    match failed {
        Ok(Status::Failed { error }) => Error::Consumer { consumer: spec.name, queue: spec.queue, error: Box::new(error) },
        _ => std::future::pending().await,
    }
}
