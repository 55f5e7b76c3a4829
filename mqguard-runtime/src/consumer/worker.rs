use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::error::ConsumerError;
use super::pipeline::Pipeline;
use crate::backoff::Pause;
use crate::broker::{BrokerError, ConsumeRequest, DeclareMode, Delivery, Settlement, Subscription};
use crate::health::Status;

/// Keeps one consumer consuming: declares, subscribes, takes deliveries, and does so again when the connection or the store comes back.
pub(crate) struct Worker {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) mode: DeclareMode,
    pub(crate) status: watch::Sender<Status>,
    slots: Arc<Semaphore>,
    /// Ended subscriptions whose handlers still run.
    retired: TaskTracker,
}

/// Why a subscription is not consumed any more.
enum End {
    Drained,
    Lost(BrokerError),
    StoreDown(String),
}

/// A subscription that lasted as long as this works; one that ends sooner is not begun again at once.
const STEADY: Duration = Duration::from_secs(10);

/// How long a drain waits for a subscription that is being made.
const SUBSCRIBED: Duration = Duration::from_secs(1);

/// After the force signal, handlers are dropped and hand back; this long is waited for that.
const FORCED: Duration = Duration::from_secs(3);

impl Worker {
    pub(crate) fn new(pipeline: Arc<Pipeline>, mode: DeclareMode, status: watch::Sender<Status>) -> Self {
        let concurrency = pipeline.spec.concurrency.unwrap_or(pipeline.spec.prefetch).max(1);
        Self { pipeline, mode, status, slots: Arc::new(Semaphore::new(concurrency.into())), retired: TaskTracker::new() }
    }

    /// Runs until the drain signal.
    ///
    /// # Errors
    /// What does not pass by itself: a topology that does not match, access refused at the first attempt.
    pub(crate) async fn run(self) -> Result<(), ConsumerError> {
        let result = self.consume_until_drained().await;
        // A failure is told at once, whatever still runs.
        self.set_status(match &result {
            Ok(()) => Status::Draining,
            Err(error) => Status::Failed { error: error.clone() },
        });
        self.retired.close();
        self.retired.wait().await;
        if result.is_ok() {
            self.set_status(Status::Stopped);
        }
        result
    }

    async fn consume_until_drained(&self) -> Result<(), ConsumerError> {
        let drain = &self.pipeline.stop.drain;
        let (mut connecting, mut subscribing) = (Pause::broker(), Pause::reconnect());
        let mut has_consumed = false;
        while !drain.is_cancelled() {
            let ready = tokio::select! {
                ready = self.prepare(has_consumed) => ready,
                () = drain.cancelled() => break,
            };
            let subscription = match ready {
                Ok(()) => {
                    let Some(subscription) = self.subscribe().await else { break };
                    subscription
                }
                Err(error) => Err(error),
            };
            let pause = match subscription {
                Ok(subscription) => {
                    self.set_status(self.consuming());
                    has_consumed = true;
                    let began = Instant::now();
                    self.consume(subscription).await;
                    connecting = Pause::broker();
                    if began.elapsed() >= STEADY {
                        subscribing = Pause::reconnect();
                    }
                    subscribing.step()
                }
                Err(error) if error.is_passing(has_consumed) => {
                    self.set_status(Status::Reconnecting { reason: error.to_string() });
                    // It ended because the broker went away, not for a reason of its own.
                    subscribing = Pause::reconnect();
                    connecting.step()
                }
                Err(error) => return Err(error),
            };
            tokio::select! { () = tokio::time::sleep(pause) => {}, () = drain.cancelled() => {} }
        }
        Ok(())
    }

    async fn prepare(&self, has_consumed: bool) -> Result<(), ConsumerError> {
        self.wait_for_store(has_consumed).await?;
        Ok(self.pipeline.broker.declare(&self.pipeline.spec.topology(), self.mode).await?)
    }

    /// `None` when the drain signal comes and this takes long. Otherwise it is seen through: what is delivered meanwhile and not settled
    /// would seem to have been run.
    async fn subscribe(&self) -> Option<Result<Box<dyn Subscription>, ConsumerError>> {
        let spec = self.pipeline.spec;
        tokio::select! {
            subscription = self.pipeline.broker.consume(self.request(spec.queue.to_owned(), spec.prefetch)) => Some(subscription.map_err(ConsumerError::from)),
            () = async { self.pipeline.stop.drain.cancelled().await; tokio::time::sleep(SUBSCRIBED).await } => None,
        }
    }

    pub(super) fn request(&self, queue: String, prefetch: u16) -> ConsumeRequest {
        ConsumeRequest { queue, tag: self.pipeline.spec.name.to_owned(), prefetch }
    }

    async fn wait_for_store(&self, has_consumed: bool) -> Result<(), ConsumerError> {
        let Some(ledger) = &self.pipeline.ledger else { return Ok(()) };
        let mut pause = Pause::reconnect();
        while let Err(error) = ledger.ping().await {
            if let Some(outage) = ledger.outage().filter(|_| ledger.runs_in_spite_of(&error)) {
                outage.begin(&error);
                return Ok(());
            }
            let error = ledger.about(error);
            if !error.is_passing(has_consumed) {
                return Err(error);
            }
            self.set_status(Status::Paused { reason: error.to_string() });
            tokio::time::sleep(pause.step()).await;
        }
        if let Some(outage) = ledger.outage() {
            outage.end();
        }
        Ok(())
    }

    /// With its store, or without; and whether what comes of the messages can be put where it has to go.
    fn consuming(&self) -> Status {
        if let Some(reason) = self.pipeline.courier.stuck.why().borrow().clone() {
            return Status::Stuck { reason };
        }
        let ledger = self.pipeline.ledger.as_ref();
        match ledger.and_then(|ledger| Some(ledger.about(ledger.outage()?.why()?))) {
            Some(error) => Status::Degraded { reason: error.to_string() },
            None => Status::Consuming,
        }
    }

    /// Sees to it that going without the store ends when that is back.
    async fn watch_for_outages(&self) -> Infallible {
        let Some((ledger, outage)) = self.pipeline.ledger.as_ref().and_then(|ledger| Some((ledger, ledger.outage()?))) else {
            return std::future::pending().await;
        };
        let mut pause = Pause::reconnect();
        let mut was_back = Instant::now();
        loop {
            outage.begun().await;
            self.set_status(self.consuming());
            // A store that goes away again at once, or answers nothing but this, is not looked at over and over.
            if was_back.elapsed() >= STEADY {
                pause = Pause::reconnect();
            }
            let error = loop {
                tokio::time::sleep(pause.step()).await;
                match ledger.ping().await {
                    Err(error) if ledger.runs_in_spite_of(&error) => {}
                    answer => break answer.err(),
                }
            };
            outage.end();
            match error {
                None => self.set_status(self.consuming()),
                Some(error) => self.pipeline.store_failed(&error),
            }
            was_back = Instant::now();
        }
    }

    async fn watch_for_stuck_messages(&self) -> Infallible {
        let mut why = self.pipeline.courier.stuck.why();
        loop {
            self.set_status(self.consuming());
            // The sender is the pipeline's own, so it is there.
            if why.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Consumes until the subscription ends. What still runs then is seen off beside whatever follows: a slow handler holds nothing up.
    async fn consume(&self, mut subscription: Box<dyn Subscription>) {
        let running = TaskTracker::new();
        let end = tokio::select! {
            end = self.take_deliveries(&mut subscription, &running) => end,
            error = self.take_quarantined(&running) => End::Lost(error),
            never = self.watch_for_outages() => match never {},
            never = self.watch_for_stuck_messages() => match never {},
        };
        running.close();
        let last = match end {
            End::Lost(error) => {
                self.set_status(Status::Reconnecting { reason: error.to_string() });
                None
            }
            End::Drained | End::StoreDown(_) => {
                if let End::StoreDown(reason) = end {
                    self.set_status(Status::Paused { reason });
                }
                match subscription.cancel().await {
                    Ok(left) => self.hand_back(left, &running),
                    Err(error) => {
                        tracing::debug!(
                            queue = self.pipeline.spec.queue,
                            "the subscription ended before it was cancelled: {error}"
                        );
                    }
                }
                Some(subscription)
            }
        };
        self.retired.spawn(see_off(Arc::clone(&self.pipeline), running, last));
    }

    /// What was received and did not begin. Each may need a copy.
    fn hand_back(&self, left: Vec<Delivery>, running: &TaskTracker) {
        for flight in left.into_iter().map(|delivery| self.pipeline.receive(delivery)) {
            if flight.progress.crashes > 0 {
                let pipeline = Arc::clone(&self.pipeline);
                running.spawn(Box::pin(async move { pipeline.give_back(flight).await }));
            } else {
                flight.delivery.receipt.settle(Settlement::Return);
            }
        }
    }

    async fn take_deliveries(&self, subscription: &mut Box<dyn Subscription>, running: &TaskTracker) -> End {
        let drain = &self.pipeline.stop.drain;
        let mut store_down = self.pipeline.store_down.subscribe();
        loop {
            let next = async {
                // That the subscription ends is to be noticed though every handler is busy. The semaphore is never closed.
                let slot = tokio::select! {
                    biased;
                    slot = Arc::clone(&self.slots).acquire_owned() => slot.ok(),
                    error = subscription.ended() => return Err(error),
                };
                Ok((slot, subscription.next().await?))
            };
            let (slot, delivery) = tokio::select! {
                biased;
                () = drain.cancelled() => return End::Drained,
                reason = next_trouble(&mut store_down) => return End::StoreDown(reason),
                next = next => match next {
                    Ok(next) => next,
                    Err(error) => return End::Lost(error),
                },
            };
            let (pipeline, flight) = (Arc::clone(&self.pipeline), self.pipeline.receive(delivery));
            // A task is moved several times before it runs.
            running.spawn(Box::pin(async move {
                pipeline.process(flight).await;
                drop(slot);
            }));
        }
    }

    /// Says a change of state once.
    fn set_status(&self, status: Status) {
        let queue = self.pipeline.spec.queue;
        let before = self.status.send_replace(status.clone());
        if std::mem::discriminant(&before) == std::mem::discriminant(&status) {
            return;
        }
        match &status {
            // The courier has said what it is.
            Status::Starting | Status::Stuck { .. } | Status::Draining | Status::Stopped => tracing::debug!(queue, "{status}"),
            Status::Consuming => tracing::info!(queue, "{status}"),
            Status::Degraded { .. } | Status::Reconnecting { .. } | Status::Paused { .. } => tracing::warn!(queue, "{status}"),
            Status::Failed { .. } => tracing::error!(queue, "{status}"),
        }
    }
}

/// The next time that the store cannot answer.
async fn next_trouble(store_down: &mut watch::Receiver<String>) -> String {
    // The sender is the pipeline's own, so it is there.
    if store_down.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
    store_down.borrow_and_update().clone()
}

/// Waits for the handlers of an ended subscription, until they end or a little past the force signal, and closes it: its deliveries can
/// only be settled on it.
async fn see_off(pipeline: Arc<Pipeline>, running: TaskTracker, subscription: Option<Box<dyn Subscription>>) {
    let queue = pipeline.spec.queue;
    tokio::select! {
        () = running.wait() => {}
        () = async { pipeline.stop.force.cancelled().await; tokio::time::sleep(FORCED).await } => {
            tracing::warn!(queue, left = running.len(), "handlers did not yield; their messages come again");
        }
    }
    if let Some(subscription) = subscription
        && let Err(error) = subscription.close().await
    {
        tracing::warn!(queue, "the last acknowledgements may be lost, those messages come again: {error}");
    }
}
