//! What one writes by hand: a task for each delivery, an ack for each message.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties, Consumer};
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

use crate::work::{Done, Load, Order, PREFETCH};

pub(crate) async fn plain(load: Load) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let (connection, channel, mut deliveries) = consume(&load).await?;
    let (done, mut tasks) = (Done::after(load.messages), JoinSet::new());
    for _ in 0..load.messages {
        let Some(delivery) = deliveries.next().await.transpose()? else { break };
        let done = done.clone();
        tasks.spawn(async move { handle(&delivery, &done).await });
        while let Some(result) = tasks.try_join_next() {
            result??;
        }
    }
    finish(done, tasks, channel, connection, started).await
}

pub(crate) async fn with_redis(load: Load) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let redis = redis::Client::open(load.redis.as_str())?.get_multiplexed_async_connection().await?;
    let (connection, channel, mut deliveries) = consume(&load).await?;
    let (done, mut tasks) = (Done::after(load.messages), JoinSet::new());
    for _ in 0..load.messages {
        let Some(delivery) = deliveries.next().await.transpose()? else { break };
        let (done, redis) = (done.clone(), redis.clone());
        tasks.spawn(async move { handle_once(&delivery, &done, redis).await });
        while let Some(result) = tasks.try_join_next() {
            result??;
        }
    }
    finish(done, tasks, channel, connection, started).await
}

async fn consume(load: &Load) -> anyhow::Result<(Connection, Channel, Consumer)> {
    let connection = Connection::connect(&load.broker, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.basic_qos(PREFETCH, BasicQosOptions::default()).await?;
    let options = BasicConsumeOptions::default();
    let deliveries = channel.basic_consume(load.queue.as_str().into(), "twin".into(), options, FieldTable::default()).await?;
    Ok((connection, channel, deliveries))
}

async fn handle(delivery: &Delivery, done: &Done) -> anyhow::Result<()> {
    let order: Order = serde_json::from_slice(&delivery.data)?;
    done.work(&order);
    delivery.acker.ack(BasicAckOptions::default()).await?;
    Ok(())
}

async fn handle_once(delivery: &Delivery, done: &Done, mut redis: MultiplexedConnection) -> anyhow::Result<()> {
    let order: Order = serde_json::from_slice(&delivery.data)?;
    let id = delivery.properties.message_id().as_ref().map(ToString::to_string).unwrap_or_default();
    let mut claim = redis::cmd("SET");
    claim.arg(format!("twin:{id}")).arg(1).arg("EX").arg(86_400).arg("NX");
    if claim.query_async::<Option<String>>(&mut redis).await?.is_some() {
        done.work(&order);
    }
    delivery.acker.ack(BasicAckOptions::default()).await?;
    Ok(())
}

async fn finish(
    done: Done,
    mut tasks: JoinSet<anyhow::Result<()>>,
    channel: Channel,
    connection: Connection,
    started: Instant,
) -> anyhow::Result<Duration> {
    while let Some(result) = tasks.join_next().await {
        result??;
    }
    done.wait().await;
    // Without this round trip the last acks may be lost with the connection.
    channel.close(200, "done".into()).await?;
    connection.close(200, "done".into()).await?;
    Ok(started.elapsed())
}
