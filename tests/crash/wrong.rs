use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use mqguard::broker::{Address, Broker, BrokerError, ConsumeRequest, Subscription, Topology};
use mqguard::idempotency::{Claim, ClaimRequest, Hold, Settled, Step, Store, StoreError};
use mqguard::{DeclareMode, MemoryBroker, MemoryStore, Message, PublishError};

/// Grants whatever is asked for.
#[derive(Debug, Default)]
pub(crate) struct ForgetfulStore;

#[async_trait::async_trait]
impl Store for ForgetfulStore {
    async fn claim(&self, _request: &ClaimRequest) -> Result<Claim, StoreError> {
        Ok(Claim::Granted { crashes: 0 })
    }

    async fn settle(&self, _hold: &Hold, _step: &Step) -> Result<Settled, StoreError> {
        Ok(Settled::Applied)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Grants what another owner holds.
#[derive(Debug, Default)]
pub(crate) struct SharingStore(MemoryStore);

#[async_trait::async_trait]
impl Store for SharingStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        match self.0.claim(request).await? {
            Claim::Busy { .. } => Ok(Claim::Granted { crashes: 0 }),
            answer => Ok(answer),
        }
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        self.0.settle(hold, step).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.0.ping().await
    }
}

/// Confirms retry copies and does not keep them.
#[derive(Debug)]
pub(crate) struct LosingBroker(pub(crate) MemoryBroker);

/// Puts retry copies straight into the queue.
#[derive(Debug)]
pub(crate) struct EagerBroker(pub(crate) MemoryBroker);

/// Message ids of which a step was refused.
pub(crate) type Refused = Arc<Mutex<HashSet<String>>>;

/// Notes which steps are refused.
#[derive(Debug)]
pub(crate) struct RefusingStore(pub(crate) MemoryStore, pub(crate) Refused);

#[async_trait::async_trait]
impl Store for RefusingStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        self.0.claim(request).await
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        let answer = self.0.settle(hold, step).await?;
        if answer == Settled::Refused {
            self.1.lock().unwrap().insert(hold.identity.message_id().to_owned());
        }
        Ok(answer)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.0.ping().await
    }
}

/// Does not keep the copy by which a delivery is handed back whose step was refused: as when that is acknowledged and no more.
#[derive(Debug)]
pub(crate) struct AckingBroker(pub(crate) MemoryBroker, pub(crate) Refused);

macro_rules! broker {
    ($broker:ident, |$this:ident, $address:ident, $message:ident| $retry:expr) => {
        #[async_trait::async_trait]
        impl Broker for $broker {
            async fn publish(&self, $address: &Address, $message: &Message) -> Result<(), PublishError> {
                let $this = self;
                if $address.routing_key.contains(".retry.") { $retry } else { self.0.publish($address, $message).await }
            }

            async fn declare(&self, topology: &Topology, mode: DeclareMode) -> Result<(), BrokerError> {
                self.0.declare(topology, mode).await
            }

            async fn consume(&self, request: ConsumeRequest) -> Result<Box<dyn Subscription>, BrokerError> {
                self.0.consume(request).await
            }

            async fn ping(&self) -> Result<(), BrokerError> {
                self.0.ping().await
            }

            async fn close(&self) {
                self.0.close().await;
            }

            fn frame_max(&self) -> usize {
                self.0.frame_max()
            }
        }
    };
}

broker!(LosingBroker, |_broker, _address, _message| Ok(()));
broker!(EagerBroker, |broker, _address, message| broker.0.publish(&Address::queue("charge"), message).await);
broker!(AckingBroker, |broker, address, message| {
    let id = message.properties.message_id.as_deref().unwrap_or_default();
    if broker.1.lock().unwrap().remove(id) { Ok(()) } else { broker.0.publish(address, message).await }
});
