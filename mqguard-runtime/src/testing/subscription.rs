use std::sync::Arc;

use async_trait::async_trait;

use super::broker::{ProcessBroker, dead};
use super::fault::Fault;
use super::step::StepKind;
use super::world::{Ack, generation_of, id_of};
use crate::broker::{BrokerError, Delivery, Receipt, Settle, Settlement, Subscription};

/// A subscription of one process.
pub(super) struct ProcessSubscription {
    pub(super) inner: Box<dyn Subscription>,
    pub(super) queue: String,
    pub(super) broker: ProcessBroker,
}

impl ProcessSubscription {
    /// A delivery whose settlement is a step of the process.
    fn wrap(&self, delivery: Delivery) -> Option<Delivery> {
        let (tag, channel) = delivery.receipt.into_parts()?;
        let (id, generation) = (id_of(&delivery.message).to_owned(), generation_of(&delivery.message));
        let settling = Settling { channel, queue: self.queue.clone(), id, generation, broker: self.broker.clone() };
        Some(Delivery { receipt: Receipt::new(tag, Arc::new(settling)), ..delivery })
    }
}

#[async_trait]
impl Subscription for ProcessSubscription {
    async fn next(&mut self) -> Result<Delivery, BrokerError> {
        let ProcessBroker { world, process } = &self.broker;
        // A broker serves its consumers in turn.
        tokio::task::yield_now().await;
        let delivery = tokio::select! {
            biased;
            () = process.died() => return Err(dead()),
            delivery = self.inner.next() => delivery?,
        };
        let id = id_of(&delivery.message);
        let again = if delivery.redelivered { ", again" } else { "" };
        world.note(process, format!("delivery from {} of {id}{again}", self.queue));
        self.wrap(delivery).ok_or_else(dead)
    }

    async fn ended(&mut self) -> BrokerError {
        tokio::select! {
            biased;
            () = self.broker.process.died() => dead(),
            error = self.inner.ended() => error,
        }
    }

    async fn cancel(&mut self) -> Result<Vec<Delivery>, BrokerError> {
        if self.broker.process.is_dead() {
            return Err(dead());
        }
        let left = self.inner.cancel().await?;
        Ok(left.into_iter().filter_map(|delivery| self.wrap(delivery)).collect())
    }

    async fn close(self: Box<Self>) -> Result<(), BrokerError> {
        if self.broker.process.is_dead() { Err(dead()) } else { self.inner.close().await }
    }
}

/// Settles one delivery.
struct Settling {
    channel: Arc<dyn Settle>,
    queue: String,
    id: String,
    generation: u32,
    broker: ProcessBroker,
}

#[async_trait]
impl Settle for Settling {
    fn settle(&self, tag: u64, settlement: Settlement) {
        let ProcessBroker { world, process } = &self.broker;
        let event = process.told();
        if process.is_dead() {
            return;
        }
        let (Self { queue, id, .. }, verb) = (self, format!("{settlement:?}").to_lowercase());
        let begun =
            world.begin(process, StepKind::Settlement, format!("{verb} to {queue} of {id} ({})", event.unwrap_or("dropped")));
        let fault = begun.fault;
        let applies = self.channel.is_open() && !fault.is_some_and(Fault::prevents);
        if applies {
            self.channel.settle(tag, settlement);
            if settlement == Settlement::Ack {
                let ack = Ack { queue: world.known.home(queue).to_owned(), id: id.clone(), generation: self.generation, event };
                world.book().acks.push(ack);
            }
        }
        match fault {
            None => {}
            Some(Fault::CrashBefore | Fault::CrashAfter) => world.kill(process),
            Some(_) => process.cut(),
        }
        world.end(begun, if applies { "done" } else { "no effect" });
    }

    fn is_open(&self) -> bool {
        !self.broker.process.is_dead() && self.channel.is_open()
    }

    async fn closed(&self) {
        tokio::select! {
            () = self.broker.process.died() => {}
            () = self.channel.closed() => {}
        }
    }
}
