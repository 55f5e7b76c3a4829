use std::sync::Arc;
use std::time::Duration;

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, ExchangeKind as LapinExchangeKind};
use tokio::time::timeout;

use super::connection::{Link, OPERATION_TIMEOUT, Slot, discard, no_answer};
use super::convert::short;
use super::errors;
use crate::broker::contract::BrokerError;
use crate::broker::topology::{Binding, DeclareMode, Exchange, ExchangeKind, Queue, QueueType, Topology};

/// Declares or checks a topology, on a channel of its own: the broker closes the channel at the first mistake, and gives back all that is
/// unsettled on it.
pub(super) async fn declare(slot: &Slot, topology: &Topology, mode: DeclareMode) -> Result<(), BrokerError> {
    let passive = match mode {
        DeclareMode::Declare => false,
        DeclareMode::Verify => true,
        DeclareMode::Skip => return Ok(()),
    };
    let scratch = Scratch::open(slot).await?;
    for exchange in &topology.exchanges {
        scratch.exchange(exchange, passive).await?;
    }
    for queue in &topology.queues {
        scratch.queue(queue, passive).await?;
    }
    if !passive {
        for binding in &topology.bindings {
            scratch.bind(binding).await?;
        }
    }
    Ok(())
}

/// Removes a queue with what is in it.
pub(super) async fn delete_queue(slot: &Slot, name: &str) -> Result<(), BrokerError> {
    let (scratch, queue) = (Scratch::open(slot).await?, named("queue", name)?);
    let rights = format!("configure the queue `{name}`");
    scratch.run("queue", name, &rights, scratch.channel.queue_delete(queue, Default::default())).await.map(|_| ())
}

/// Removes an exchange.
pub(super) async fn delete_exchange(slot: &Slot, name: &str) -> Result<(), BrokerError> {
    let (scratch, exchange) = (Scratch::open(slot).await?, named("exchange", name)?);
    let rights = format!("configure the exchange `{name}`");
    scratch.run("exchange", name, &rights, scratch.channel.exchange_delete(exchange, Default::default())).await
}

/// Whether a queue is there.
pub(super) async fn queue_exists(link: &Arc<Link>, name: &str) -> Result<bool, BrokerError> {
    let scratch = Scratch { link: Arc::clone(link), channel: link.channel().await? };
    match scratch.ready(name).await {
        Ok(_) => Ok(true),
        Err(BrokerError::Missing { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether no message is ready in a queue.
pub(super) async fn is_empty(slot: &Slot, name: &str) -> Result<bool, BrokerError> {
    Ok(Scratch::open(slot).await?.ready(name).await? == 0)
}

/// A channel that may break.
struct Scratch {
    link: Arc<Link>,
    channel: Channel,
}

impl Scratch {
    async fn open(slot: &Slot) -> Result<Self, BrokerError> {
        let (link, channel) = slot.channel().await?;
        Ok(Self { link, channel })
    }

    async fn exchange(&self, exchange: &Exchange, passive: bool) -> Result<(), BrokerError> {
        // The default exchange is always there, and may not be declared.
        if exchange.name.is_empty() {
            return Ok(());
        }
        let kind = match exchange.kind {
            ExchangeKind::Direct => LapinExchangeKind::Direct,
            ExchangeKind::Topic => LapinExchangeKind::Topic,
            ExchangeKind::Fanout => LapinExchangeKind::Fanout,
        };
        let options = ExchangeDeclareOptions { passive, durable: true, ..Default::default() };
        let name = named("exchange", &exchange.name)?;
        let rights = format!("configure the exchange `{}`", exchange.name);
        let declared = self.channel.exchange_declare(name, kind, options, FieldTable::default());
        self.run("exchange", &exchange.name, &rights, declared).await
    }

    /// How many messages are ready in a queue.
    async fn ready(&self, name: &str) -> Result<u32, BrokerError> {
        // The type is not looked at.
        self.queue(&Queue::new(name, QueueType::Classic), true).await.map(|queue| queue.message_count())
    }

    async fn queue(&self, queue: &Queue, passive: bool) -> Result<lapin::Queue, BrokerError> {
        let options = QueueDeclareOptions { passive, durable: true, ..Default::default() };
        let arguments = if passive { FieldTable::default() } else { arguments(queue) };
        let name = named("queue", &queue.name)?;
        let rights = match queue.dead_letters {
            Some(_) => format!("configure and read the queue `{}`, and to write to the exchange of its dead letters", queue.name),
            None => format!("configure the queue `{}`", queue.name),
        };
        self.run("queue", &queue.name, &rights, self.channel.queue_declare(name, options, arguments)).await
    }

    async fn bind(&self, binding: &Binding) -> Result<(), BrokerError> {
        let (queue, exchange) = (named("queue", &binding.queue)?, named("exchange", &binding.exchange)?);
        let key = named("routing key", &binding.routing_key)?;
        let bound = self.channel.queue_bind(queue, exchange, key, QueueBindOptions::default(), FieldTable::default());
        let rights = format!("write to the queue `{}` and to read from the exchange `{}`", binding.queue, binding.exchange);
        self.run("queue", &binding.queue, &rights, bound).await
    }

    async fn run<T>(
        &self,
        what: &'static str,
        name: &str,
        rights: &str,
        operation: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T, BrokerError> {
        match timeout(OPERATION_TIMEOUT, operation).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if errors::reply(&error).is_none() => Err(BrokerError::Unavailable(self.link.state().reason(&error))),
            Ok(Err(error)) => Err(errors::operation(&error, what, name, rights)),
            Err(_) => Err(no_answer(&format!("an operation on the {what} `{name}`"))),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        discard(self.channel.clone());
    }
}

/// The arguments that make a queue what it is declared to be.
fn arguments(queue: &Queue) -> FieldTable {
    let text = |text: &str| AMQPValue::LongString(text.into());
    let mut arguments = FieldTable::default();
    let mut set = |name: &str, value| {
        arguments.insert(name.into(), value);
    };
    let quorum = queue.queue_type == QueueType::Quorum;
    set("x-queue-type", text(if quorum { "quorum" } else { "classic" }));
    if let Some(ttl) = queue.message_ttl {
        set("x-message-ttl", millis(ttl));
    }
    if let Some(expires) = queue.expires {
        set("x-expires", millis(expires));
    }
    if let Some(target) = &queue.dead_letters {
        set("x-dead-letter-exchange", text(&target.exchange));
        set("x-dead-letter-routing-key", text(&target.routing_key));
        if quorum {
            // One without the other falls back to "at most once" with no more than a line in the server's log.
            set("x-dead-letter-strategy", text("at-least-once"));
            set("x-overflow", text("reject-publish"));
        }
    }
    if let Some(limit) = queue.delivery_limit.filter(|_| quorum) {
        set("x-delivery-limit", AMQPValue::LongLongInt(limit.into()));
    }
    arguments
}

/// Whole milliseconds, never earlier than asked for.
fn millis(duration: Duration) -> AMQPValue {
    AMQPValue::LongLongInt(i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX))
}

fn named(what: &'static str, name: &str) -> Result<ShortString, BrokerError> {
    short(&format!("the name of the {what}"), name).map_err(BrokerError::Unsupported)
}
