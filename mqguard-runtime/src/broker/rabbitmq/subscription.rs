use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use lapin::options::{BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Consumer};
use tokio::time::timeout;

use super::acker::Acker;
use super::connection::{Link, OPERATION_TIMEOUT, Slot, discard, no_answer};
use super::convert::{short, to_message};
use super::{declare, errors};
use crate::broker::contract::{BrokerError, ConsumeRequest, Delivery, Receipt, Settle, Settlement, Subscription};

/// A consumer on a channel of its own.
pub(super) struct RabbitMqSubscription {
    /// Gone once the subscription is closed.
    consumer: Option<Consumer>,
    channel: Channel,
    acker: Arc<Acker>,
    link: Arc<Link>,
    queue: Arc<str>,
    state: State,
    /// Received while somebody waited for the end.
    ahead: VecDeque<Delivery>,
}

enum State {
    Open,
    /// The broker ended it; why is not found out yet.
    CancelledByBroker,
    Ended(BrokerError),
}

impl RabbitMqSubscription {
    pub(super) async fn start(slot: &Slot, request: &ConsumeRequest) -> Result<Self, BrokerError> {
        let ConsumeRequest { queue, tag, prefetch } = request;
        let name = short("the name of the queue", queue).map_err(BrokerError::Unsupported)?;
        // The tag is for people to read: a long one is cut, at the start of a character.
        let tag = &tag[..tag.floor_char_boundary(200)];
        let tag = short("the consumer's tag", &format!("{tag}-{:016x}", fastrand::u64(..))).map_err(BrokerError::Unsupported)?;
        let (link, channel) = slot.channel().await?;
        let started = async {
            // Per consumer: quorum queues do not know a limit for the whole channel.
            channel.basic_qos(*prefetch, BasicQosOptions { global: false }).await?;
            channel.basic_consume(name, tag, BasicConsumeOptions::default(), FieldTable::default()).await
        };
        let consumer = match timeout(OPERATION_TIMEOUT, started).await {
            Ok(Ok(consumer)) => consumer,
            Ok(Err(error)) if errors::reply(&error).is_none() => {
                return Err(BrokerError::Unavailable(link.state().reason(&error)));
            }
            Ok(Err(error)) => return Err(errors::operation(&error, "queue", queue, &format!("read the queue `{queue}`"))),
            Err(_) => {
                discard(channel);
                return Err(no_answer(&format!("consuming the queue `{queue}`")));
            }
        };
        let queue: Arc<str> = queue.as_str().into();
        let acker = Acker::start(Arc::clone(&queue), channel.clone(), Arc::clone(link.state()), *prefetch);
        Ok(Self { consumer: Some(consumer), channel, acker, link, queue, state: State::Open, ahead: VecDeque::new() })
    }

    fn receive(&self, delivery: lapin::message::Delivery) -> Delivery {
        Delivery {
            exchange: delivery.exchange.as_str().to_owned(),
            routing_key: delivery.routing_key.as_str().to_owned(),
            redelivered: delivery.redelivered,
            receipt: Receipt::new(delivery.delivery_tag, Arc::clone(&self.acker) as Arc<dyn Settle>),
            message: Arc::new(to_message(&delivery.properties, delivery.data)),
        }
    }

    fn end(&mut self, reason: String) -> BrokerError {
        let error = BrokerError::Unavailable(reason);
        self.state = State::Ended(error.clone());
        error
    }

    /// The next delivery that is not received yet.
    async fn receive_next(&mut self) -> Result<Delivery, BrokerError> {
        loop {
            match &self.state {
                State::Ended(error) => return Err(error.clone()),
                State::CancelledByBroker => {
                    let reason = self.why_cancelled().await;
                    return Err(self.end(reason));
                }
                State::Open => {}
            }
            let Some(consumer) = &mut self.consumer else {
                return Err(self.end("the subscription is closed".into()));
            };
            match consumer.next().await {
                Some(Ok(delivery)) => return Ok(self.receive(delivery)),
                Some(Err(error)) => {
                    let reason = self.link.state().reason(&error);
                    return Err(self.end(format!("consuming the queue `{}` ended: {reason}", self.queue)));
                }
                // Remembered before anything is awaited: the client library does not say it twice.
                None if self.link.is_open() && self.channel.status().connected() => self.state = State::CancelledByBroker,
                None => return Err(self.end(format!("consuming the queue `{}` ended: the connection was closed", self.queue))),
            }
        }
    }

    /// Why the broker cancelled the consumer: it does not say so itself.
    async fn why_cancelled(&self) -> String {
        let queue = &self.queue;
        match declare::queue_exists(&self.link, queue).await {
            Ok(false) => format!("the broker cancelled the consumer: the queue `{queue}` was deleted"),
            Ok(true) => format!(
                "the broker cancelled the consumer of the queue `{queue}`: the queue moved to another node, or a delivery was not settled \
                 within the broker's acknowledgement timeout"
            ),
            Err(error) => format!("the broker cancelled the consumer of the queue `{queue}` ({error})"),
        }
    }
}

#[async_trait]
impl Subscription for RabbitMqSubscription {
    async fn next(&mut self) -> Result<Delivery, BrokerError> {
        match self.ahead.pop_front() {
            Some(delivery) if matches!(self.state, State::Open) => Ok(delivery),
            _ => self.receive_next().await,
        }
    }

    async fn ended(&mut self) -> BrokerError {
        loop {
            match self.receive_next().await {
                Ok(delivery) => self.ahead.push_back(delivery),
                Err(error) => return error,
            }
        }
    }

    async fn cancel(&mut self) -> Result<Vec<Delivery>, BrokerError> {
        let Some(consumer) = &self.consumer else {
            return Ok(Vec::new());
        };
        if matches!(self.state, State::Open) {
            self.state = State::Ended(BrokerError::Unavailable("the subscription was cancelled".into()));
        }
        let tag = consumer.tag();
        self.acker.cancel(tag).await?;
        let mut left: Vec<_> = self.ahead.drain(..).collect();
        // All is there already: after its answer to the cancellation the broker delivers nothing more.
        while let Some(Some(Some(Ok(delivery)))) = self.consumer.as_mut().map(|consumer| consumer.next().now_or_never()) {
            left.push(self.receive(delivery));
        }
        Ok(left)
    }

    async fn close(mut self: Box<Self>) -> Result<(), BrokerError> {
        let cancelled = match self.state {
            State::Open => {
                self.cancel().await.map(|left| left.into_iter().for_each(|delivery| delivery.receipt.settle(Settlement::Return)))
            }
            _ => Ok(()),
        };
        let Some(consumer) = self.consumer.take() else {
            return Ok(());
        };
        let closed = self.acker.close(consumer);
        // The acker bounds this itself, except for what it is still writing.
        match timeout(OPERATION_TIMEOUT * 2, closed).await {
            Ok(Ok(closed)) => cancelled.and(closed),
            Ok(Err(_)) => Err(BrokerError::Unavailable("the subscription has ended".into())),
            Err(_) => Err(no_answer("closing a subscription")),
        }
    }
}

impl Drop for RabbitMqSubscription {
    /// Everything unsettled is handed back, as on [`close`](Subscription::close), without anybody waiting for it.
    fn drop(&mut self) {
        if let Some(consumer) = self.consumer.take() {
            drop(self.acker.close(consumer));
        }
    }
}
