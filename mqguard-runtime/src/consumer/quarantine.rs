//! The queue of those that run alone.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::isolation::Turn;
use super::pipeline::Pipeline;
use super::worker::Worker;
use crate::broker::{BrokerError, ConsumeRequest};

/// How often it is looked for messages that other processes left there.
const LOOK: Duration = Duration::from_secs(30);
/// In which the broker delivers what is there.
const DELIVERED: Duration = Duration::from_secs(1);
/// The same, when this process is about to end.
const ON_ITS_WAY: Duration = Duration::from_millis(250);

impl Worker {
    /// Takes one message at a time, and only when it is its turn to run alone: what was in hand besides, as by a subscription that stays,
    /// would seem to have been run when the process dies. Ends with the connection.
    pub(super) async fn take_quarantined(&self, running: &TaskTracker) -> BrokerError {
        if !self.pipeline.spec.has_quarantine() {
            return std::future::pending().await;
        }
        loop {
            match self.take_one_quarantined(running).await {
                Ok(true) => {}
                // An embedded broker has nothing that others left.
                Ok(false) if self.pipeline.broker.is_embedded() => self.pipeline.quarantined.notified().await,
                Ok(false) => {
                    tokio::select! { () = self.pipeline.quarantined.notified() => {}, () = tokio::time::sleep(LOOK) => {} }
                }
                Err(error) => return error,
            }
        }
    }

    /// Whether there was one. In a task of its own, so that a drain sees it through: what is dropped half way would seem to have been run.
    async fn take_one_quarantined(&self, running: &TaskTracker) -> Result<bool, BrokerError> {
        let queue = self.pipeline.spec.quarantine().name;
        // Looked at from outside, for a drain waits for a subscription. Why that cannot be told is told by the subscription.
        if self.pipeline.broker.is_empty(&queue).await == Ok(true) {
            return Ok(false);
        }
        let turn = self.pipeline.isolation.turn().await;
        let request = self.request(queue, 1);
        let taken = running.spawn(Box::pin(take_one(Arc::clone(&self.pipeline), turn, request)));
        taken
            .await
            .unwrap_or_else(|error| Err(BrokerError::Unavailable(format!("the task that ran one message alone ended: {error}"))))
    }
}

/// A quorum queue counts what is on its way when the intake ends as delivered, though nobody has seen it. In an embedded broker nothing is.
async fn no_more(pipeline: &Pipeline) {
    pipeline.stop.drain.cancelled().await;
    if !pipeline.broker.is_embedded() {
        tokio::time::sleep(ON_ITS_WAY).await;
    }
}

async fn take_one(pipeline: Arc<Pipeline>, turn: Turn, request: ConsumeRequest) -> Result<bool, BrokerError> {
    let mut subscription = pipeline.broker.consume(request).await?;
    let taken = tokio::select! {
        taken = tokio::time::timeout(DELIVERED, subscription.next()) => taken.ok().transpose()?,
        () = no_more(&pipeline) => None,
    };
    // Or the next one comes with the acknowledgement, and goes back as one that was not settled.
    let late = subscription.cancel().await?;
    // No more than one: that is the prefetch.
    let delivery = taken.into_iter().chain(late).next();
    let was_there = delivery.is_some();
    if let Some(delivery) = delivery {
        pipeline.process_alone(pipeline.receive(delivery), turn).await;
    }
    subscription.close().await?;
    Ok(was_there)
}
