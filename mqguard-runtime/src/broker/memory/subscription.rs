use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Shared;
use super::state::Taken;
use crate::broker::contract::{BrokerError, Delivery, Receipt, Settle, Settlement, Subscription};

/// A subscription to a queue of the embedded broker. Nothing is buffered: a message is taken when it is asked for.
pub(super) struct MemorySubscription(Arc<Channel>);

struct Channel {
    shared: Arc<Shared>,
    id: u64,
    wake: Arc<Notify>,
}

impl MemorySubscription {
    pub(super) fn new(shared: Arc<Shared>, id: u64, wake: Arc<Notify>) -> Self {
        Self(Arc::new(Channel { shared, id, wake }))
    }
}

fn ended() -> BrokerError {
    BrokerError::Unavailable("the subscription was ended by the embedded broker".into())
}

#[async_trait]
impl Subscription for MemorySubscription {
    async fn next(&mut self) -> Result<Delivery, BrokerError> {
        loop {
            let wake = self.0.wake.notified();
            tokio::pin!(wake);
            wake.as_mut().enable();
            let taken = self.0.shared.lock().take(self.0.id, Instant::now());
            match taken {
                Taken::Entry(tag, entry) => {
                    return Ok(Delivery {
                        message: entry.message,
                        exchange: entry.exchange,
                        routing_key: entry.routing_key,
                        redelivered: entry.redelivered,
                        receipt: Receipt::new(tag, Arc::clone(&self.0) as Arc<dyn Settle>),
                    });
                }
                Taken::Ended => return Err(ended()),
                Taken::Nothing => wake.await,
            }
        }
    }

    async fn ended(&mut self) -> BrokerError {
        self.0.closed().await;
        ended()
    }

    async fn cancel(&mut self) -> Result<Vec<Delivery>, BrokerError> {
        self.0.shared.lock().stop_intake(self.0.id);
        Ok(Vec::new())
    }

    async fn close(self: Box<Self>) -> Result<(), BrokerError> {
        self.0.shared.lock().end(self.0.id, Instant::now());
        Ok(())
    }
}

impl Drop for MemorySubscription {
    fn drop(&mut self) {
        self.0.shared.lock().end(self.0.id, Instant::now());
    }
}

#[async_trait]
impl Settle for Channel {
    fn settle(&self, tag: u64, settlement: Settlement) {
        self.shared.lock().settle(self.id, tag, settlement, Instant::now());
        self.shared.expiry.notify_one();
    }

    fn is_open(&self) -> bool {
        self.shared.lock().is_subscribed(self.id)
    }

    async fn closed(&self) {
        loop {
            let wake = self.wake.notified();
            tokio::pin!(wake);
            wake.as_mut().enable();
            if !self.is_open() {
                return;
            }
            wake.await;
        }
    }
}
