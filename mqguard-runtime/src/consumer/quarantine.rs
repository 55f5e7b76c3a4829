//! The queue of those that run alone.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::worker::Worker;
use crate::broker::BrokerError;

/// How often it is looked for messages that other processes left there.
const LOOK: Duration = Duration::from_secs(30);
/// In which the broker delivers what is there.
const DELIVERED: Duration = Duration::from_secs(1);

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

    /// Whether there was one.
    async fn take_one_quarantined(&self, running: &TaskTracker) -> Result<bool, BrokerError> {
        let pipeline = Arc::clone(&self.pipeline);
        let turn = pipeline.isolation.turn().await;
        let mut subscription = self.subscribe_to(pipeline.spec.quarantine().name, 1).await?;
        let Ok(delivery) = tokio::time::timeout(DELIVERED, subscription.next()).await else {
            subscription.close().await?;
            return Ok(false);
        };
        let flight = pipeline.receive(delivery?);
        // Or the next one comes with the acknowledgement, and goes back as one that was not settled.
        subscription.cancel().await?;
        // In a task of its own: a drain waits for it.
        let taken = running.spawn(Box::pin(async move {
            pipeline.process_alone(flight, turn).await;
            subscription.close().await
        }));
        match taken.await {
            Ok(closed) => closed.map(|()| true),
            Err(error) => Err(BrokerError::Unavailable(format!("the task that ran one message alone ended: {error}"))),
        }
    }
}
