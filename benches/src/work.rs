//! The messages, and what is done with each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use tokio::sync::Notify;

pub(crate) const PREFETCH: u16 = 200;

#[derive(Debug, serde::Deserialize)]
pub(crate) struct Order {
    pub(crate) order_id: u64,
    pub(crate) amount_cents: u64,
}

/// What a run drains.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) broker: String,
    pub(crate) redis: String,
    pub(crate) queue: String,
    pub(crate) messages: usize,
    round: usize,
}

impl Load {
    pub(crate) fn new(broker: &str, redis: &str, queue: &str, messages: usize, round: usize) -> Self {
        Self { broker: broker.to_owned(), redis: redis.to_owned(), queue: queue.to_owned(), messages, round }
    }

    /// Declares the queue as mqguard does, so that both contenders drain the same kind, and fills it.
    pub(crate) async fn fill(&self) -> anyhow::Result<()> {
        let connection = Connection::connect(&self.broker, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        let mut arguments = FieldTable::default();
        let text = |text: &str| AMQPValue::LongString(text.into());
        arguments.insert("x-queue-type".into(), text("quorum"));
        arguments.insert("x-dead-letter-exchange".into(), text("dlx.exchange"));
        arguments.insert("x-dead-letter-routing-key".into(), text(&format!("dlq.{}", self.queue)));
        arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
        arguments.insert("x-overflow".into(), text("reject-publish"));
        arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(20));
        channel
            .queue_declare(self.queue.as_str().into(), QueueDeclareOptions { durable: true, ..Default::default() }, arguments)
            .await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let numbers: Vec<usize> = (0..self.messages).collect();
        for batch in numbers.chunks(1000) {
            let publishes = batch.iter().map(|n| self.publish(&channel, *n));
            let confirms = try_join_all(publishes).await?;
            try_join_all(confirms).await?;
        }
        Ok(connection.close(200, "done".into()).await?)
    }

    async fn publish(&self, channel: &lapin::Channel, n: usize) -> Result<lapin::PublisherConfirm, lapin::Error> {
        let body = format!(r#"{{"order_id":{n},"customer":1,"date":"1997-01-01","cds":1,"amount_cents":1177}}"#);
        let properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_content_type("application/json".into())
            .with_message_id(format!("{}-{}-{n}", self.queue, self.round).into());
        channel
            .basic_publish("".into(), self.queue.as_str().into(), BasicPublishOptions::default(), body.as_bytes(), properties)
            .await
    }

    pub(crate) async fn clear(&self) -> anyhow::Result<()> {
        let connection = Connection::connect(&self.broker, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        let left = channel.queue_delete(self.queue.as_str().into(), QueueDeleteOptions::default()).await?;
        anyhow::ensure!(left == 0 || self.queue == "bench.twin", "{left} messages are left in {}", self.queue);
        let client = redis::Client::open(self.redis.as_str())?;
        let mut redis = client.get_multiplexed_async_connection().await?;
        redis::cmd("FLUSHDB").query_async::<()>(&mut redis).await?;
        Ok(connection.close(200, "done".into()).await?)
    }
}

/// Counts what is done, and tells when all is.
#[derive(Clone)]
pub(crate) struct Done {
    left: Arc<AtomicUsize>,
    all: Arc<Notify>,
}

impl Done {
    pub(crate) fn after(messages: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(messages)), all: Arc::default() }
    }

    /// The business: next to nothing, so that what is around it shows.
    pub(crate) fn work(&self, order: &Order) {
        std::hint::black_box(order.order_id ^ order.amount_cents);
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.all.notify_one();
        }
    }

    pub(crate) async fn wait(&self) {
        self.all.notified().await;
    }
}
