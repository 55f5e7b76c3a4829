//! Runs whose handler writes in a transaction that ends with the record of its success.

use std::time::Duration;

use tokio::time::Instant;

use super::context::Effects;
use super::handler::{Prepared, Ran};
use super::pipeline::{InFlight, NotDone, Pipeline};
use crate::idempotency::{Kept, NotCommitted, Settled, Step, StoreError, Transaction};

impl Pipeline {
    /// Before the commit a crash undoes what the handler wrote, and its message runs again when its lease is over; after it the redelivery
    /// is a duplicate. What was written is undone before anything else follows from a failure.
    pub(super) async fn run_in_transaction(&self, flight: Box<InFlight>, prepared: Prepared) {
        let lost = flight.lost();
        let begun = tokio::select! {
            biased;
            begun = self.begin() => begun,
            () = lost.cancelled() => return self.not_done(flight, NotDone::LeaseLost).await,
            () = self.stop.force.cancelled() => return self.not_done(flight, NotDone::Aborted).await,
        };
        let transaction = match begun {
            Ok(transaction) => transaction,
            Err(error) => return self.not_begun(flight, &error).await,
        };
        let cx = self.context(&flight, transaction.as_ref().map(|transaction| transaction.session()));
        let started = Instant::now();
        match (self.run_handler(&flight, prepared, cx.clone()).await, transaction) {
            (Ok(ran), Some(transaction)) => self.commit(flight, transaction, ran, started.elapsed(), cx.effects()).await,
            (Ok(ran), None) => self.succeed(flight, ran, started.elapsed(), cx.effects()).await,
            (Err(why), transaction) => {
                if let Some(transaction) = transaction {
                    transaction.rollback().await;
                }
                self.not_done(flight, why).await;
            }
        }
    }

    async fn begin(&self) -> Result<Option<Box<dyn Transaction>>, StoreError> {
        match &self.ledger {
            Some(ledger) => ledger.begin().await,
            None => Ok(None),
        }
    }

    async fn not_begun(&self, flight: Box<InFlight>, error: &StoreError) {
        tracing::debug!(queue = self.spec.queue, message_id = flight.message_id(), "no transaction: {error}; handed back");
        self.store_failed(error);
        self.hand_back_now(flight).await;
    }

    async fn commit(
        &self,
        flight: Box<InFlight>,
        transaction: Box<dyn Transaction>,
        ran: Ran,
        elapsed: Duration,
        effects: Effects,
    ) {
        let message_id = flight.message_id();
        match transaction.complete(flight.kept.as_ref().map(Kept::hold)).await {
            Ok(Settled::Applied) => self.done(flight, ran, elapsed, effects).await,
            Ok(Settled::Refused) => {
                tracing::warn!(queue = self.spec.queue, message_id, "undone: the claim was lost; the message comes again");
                self.hand_back_later(flight, Duration::ZERO).await;
            }
            Err(NotCommitted::Rejected(failure)) => self.fail(flight, failure).await,
            Err(NotCommitted::Undone(error)) => {
                tracing::info!(queue = self.spec.queue, message_id, "undone, the message runs again: {error}");
                self.again(flight).await;
            }
            Err(NotCommitted::Unknown(error)) => {
                tracing::warn!(
                    queue = self.spec.queue,
                    message_id,
                    "whether it was committed is seen when the message comes again: {error}"
                );
                self.store_failed(&error);
                self.again(flight).await;
            }
        }
    }

    /// The message comes again, as the same turn and uncounted. The claim is given back if it is still there: it is not when the commit
    /// has been done after all, for whoever gives it back waits for that.
    async fn again(&self, flight: Box<InFlight>) {
        let next = self.progress_of(&flight.delivery).turn();
        self.let_go(&flight, Step::Release { next }).await;
        self.hand_back_later(flight, Duration::MAX).await;
    }
}
