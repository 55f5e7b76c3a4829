//! Publishing what a delivery turns into, a retry copy or a letter, until the broker has it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::spec::ConsumerSpec;
use super::stuck::{Kind, Passage, Stuck, Trouble};
use super::topology::MAX_STEPS;
use crate::backoff::Pause;
use crate::broker::{Address, Broker, BrokerError, DeclareMode, Message, PublishError, Queue, Receipt, Topology};
use crate::retry::hold;

/// Where a message is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Back to the consumer's queue after this long.
    Hold(Duration),
    /// To the dead-letter queue.
    DeadLetters,
    /// To those that run alone.
    Quarantine,
}

/// The message could not be published before its delivery was lost, its lease was, or the grace period ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GaveUp;

pub(crate) struct Courier {
    spec: &'static ConsumerSpec,
    broker: Arc<dyn Broker>,
    mode: DeclareMode,
    /// The delays that have a permanent hold queue.
    steps: Vec<Duration>,
    /// The on-demand hold queues that were declared; each name is good for an hour.
    declared: Mutex<HashSet<String>>,
    drain: CancellationToken,
    pub(crate) stuck: Stuck,
}

impl Courier {
    pub(crate) fn new(spec: &'static ConsumerSpec, broker: Arc<dyn Broker>, mode: DeclareMode, drain: CancellationToken) -> Self {
        let steps = spec.retry.map(|retry| retry.steps(MAX_STEPS)).unwrap_or_default();
        Self { spec, broker, mode, steps, declared: Mutex::default(), drain, stuck: Stuck::default() }
    }

    /// Publishes until the broker has taken responsibility, for as long as the delivery is ours to settle.
    pub(crate) async fn deliver(
        &self,
        to: Destination,
        message: &Message,
        receipt: &Receipt,
        give_up: [&CancellationToken; 2],
    ) -> Result<(), GaveUp> {
        let [one, other] = give_up;
        tokio::select! {
            // The reasons to give up come first: what is lost already is not published at all.
            biased;
            () = receipt.closed() => Err(GaveUp),
            () = one.cancelled() => Err(GaveUp),
            () = other.cancelled() => Err(GaveUp),
            result = self.deliver_persistently(to, message) => result,
        }
    }

    async fn deliver_persistently(&self, to: Destination, message: &Message) -> Result<(), GaveUp> {
        let mut pause = Pause::new(Duration::from_millis(200), Duration::from_secs(10));
        let mut passage = self.stuck.passage();
        loop {
            let Err(error) = self.try_deliver(to, message).await else {
                passage.through(to);
                return Ok(());
            };
            self.tell(&mut passage, to, message, &error);
            // What is forbidden stays so while this process ends: the message is as safe in its queue.
            if error.trouble() == Trouble::Forbidden && self.drain.is_cancelled() {
                return Err(GaveUp);
            }
            tokio::select! {
                () = tokio::time::sleep(pause.step()) => {}
                () = self.drain.cancelled(), if error.trouble() == Trouble::Forbidden => return Err(GaveUp),
            }
        }
    }

    /// Says once what keeps messages, and what helps, and shows it in the health of the consumer.
    fn tell(&self, passage: &mut Passage<'_>, to: Destination, message: &Message, error: &DeliverError) {
        let (queue, message_id) = (self.spec.queue, message.properties.message_id.as_deref());
        let kind = Kind { letter: to == Destination::DeadLetters, trouble: error.trouble() };
        let why = format!("{error}{}", self.cure(to, error));
        let is_new = passage.is_kept(kind, &why);
        match kind.trouble {
            Trouble::Forbidden if is_new => {
                tracing::error!(queue, message_id, ?to, "{why}; the delivery is kept and this is tried again");
            }
            _ if is_new => tracing::warn!(queue, message_id, ?to, "{why}; the delivery is kept and this is tried again"),
            _ => tracing::debug!(queue, message_id, ?to, "{why}; the delivery is kept and this is tried again"),
        }
    }

    /// What an operator can do.
    fn cure(&self, to: Destination, error: &DeliverError) -> String {
        match (error, error.trouble()) {
            (DeliverError::Broker(_), Trouble::Forbidden) => match to {
                Destination::Hold(_) => format!(
                    ": so it does for all queues `{}.retry.*`, in which messages wait (`rabbitmqctl set_permissions`)",
                    self.spec.queue
                ),
                Destination::DeadLetters | Destination::Quarantine => " (`rabbitmqctl set_permissions`)".into(),
            },
            (DeliverError::Publish(_), Trouble::Forbidden) => {
                let exchange = match to {
                    Destination::DeadLetters => self.spec.dead_letter_place().exchange,
                    Destination::Hold(_) | Destination::Quarantine => "amq.default".into(),
                };
                format!("; the user needs the permission to write to the exchange `{exchange}` (`rabbitmqctl set_permissions`)")
            }
            _ => String::new(),
        }
    }

    async fn try_deliver(&self, to: Destination, message: &Message) -> Result<(), DeliverError> {
        let address = self.address(to).await?;
        match self.broker.publish(&address, message).await {
            Err(error @ PublishError::Unroutable(_)) => {
                self.redeclare(to, &address).await?;
                self.broker.publish(&address, message).await.map_err(|_| DeliverError::Publish(error))
            }
            result => Ok(result?),
        }
    }

    async fn address(&self, to: Destination) -> Result<Address, BrokerError> {
        match to {
            Destination::DeadLetters => {
                let place = self.spec.dead_letter_place();
                Ok(Address::exchange(place.exchange, place.queue))
            }
            Destination::Quarantine => Ok(Address::queue(self.spec.quarantine().name)),
            Destination::Hold(delay) if delay.is_zero() => Ok(Address::queue(self.spec.queue)),
            Destination::Hold(delay) if self.steps.contains(&delay) => Ok(Address::queue(self.permanent(delay).name)),
            Destination::Hold(delay) => {
                let queue = hold::on_demand(self.spec.queue, self.spec.queue_type, delay, self.broker.now());
                let name = queue.name.clone();
                if !self.known().contains(&name) {
                    self.declare_queue(queue).await?;
                    self.remember(name.clone());
                }
                Ok(Address::queue(name))
            }
        }
    }

    /// Declares again what a message could not be routed to: somebody deleted it. The next try finds it.
    async fn redeclare(&self, to: Destination, address: &Address) -> Result<(), BrokerError> {
        self.known().remove(&address.routing_key);
        match to {
            Destination::Hold(delay) if !self.steps.contains(&delay) => self.address(to).await.map(drop),
            _ if self.mode != DeclareMode::Declare => Ok(()),
            Destination::Hold(delay) => self.declare_queue(self.permanent(delay)).await,
            Destination::Quarantine => self.declare_queue(self.spec.quarantine()).await,
            Destination::DeadLetters => self.broker.declare(&self.spec.dead_letter_topology(), DeclareMode::Declare).await,
        }
    }

    fn permanent(&self, delay: Duration) -> Queue {
        hold::permanent(self.spec.queue, self.spec.queue_type, delay)
    }

    async fn declare_queue(&self, queue: Queue) -> Result<(), BrokerError> {
        let topology = Topology { queues: vec![queue], ..Topology::default() };
        self.broker.declare(&topology, DeclareMode::Declare).await
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, name: String) {
        let mut known = self.known();
        // Names of past hours are never asked for again; forgetting all of them costs a few declarations.
        if known.len() >= 1000 {
            known.clear();
        }
        known.insert(name);
    }
}

#[derive(Debug, thiserror::Error)]
enum DeliverError {
    #[error(transparent)]
    Broker(#[from] BrokerError),
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl DeliverError {
    fn trouble(&self) -> Trouble {
        match self {
            Self::Broker(BrokerError::Refused(_)) => Trouble::Forbidden,
            // The broker says by the same code what nobody may do.
            Self::Publish(PublishError::Refused { reason, .. }) if reason.contains("ACCESS_REFUSED") => Trouble::Forbidden,
            Self::Publish(PublishError::Refused { .. })
            | Self::Broker(BrokerError::Mismatch(_) | BrokerError::Unsupported(_)) => Trouble::Refused,
            Self::Publish(PublishError::Unroutable(_)) | Self::Broker(BrokerError::Missing { .. }) => Trouble::Missing,
            Self::Publish(_) | Self::Broker(_) => Trouble::Unavailable,
        }
    }
}
