use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use mqguard::broker::{Address, Broker, BrokerError, ConsumeRequest, Subscription, Topology};
use mqguard::{DeclareMode, MemoryBroker, Message, PublishError};
use tokio::sync::watch;

/// A connection to a memory broker whose publishes can go wrong.
#[derive(Debug, Clone)]
pub struct FaultyBroker {
    queues: MemoryBroker,
    faults: Arc<Faults>,
}

#[derive(Debug, Default)]
struct Faults {
    frozen: watch::Sender<bool>,
    publishing: Mutex<Vec<(String, Publishing)>>,
    declaring: Mutex<Vec<BrokerError>>,
    subscribing: Mutex<usize>,
    published: Mutex<Vec<String>>,
    embedded: Mutex<Option<bool>>,
}

/// What happens to one publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publishing {
    /// `basic.nack`, as of a full queue.
    Refused,
    Unroutable,
    Unavailable,
    /// The answer never comes, but the message was stored.
    UnknownStored,
    UnknownNotStored,
    /// The connection breaks while the answer is awaited; the message was stored.
    CutStored,
    CutNotStored,
    /// No answer, ever; the message was stored.
    HangStored,
    HangNotStored,
}

impl FaultyBroker {
    pub fn over(queues: MemoryBroker) -> Self {
        Self { queues, faults: Arc::default() }
    }

    /// The next publish to a routing key that begins with `to` goes wrong; planned several times, several do, in this order.
    pub fn plan(&self, to: &str, fault: Publishing) {
        self.faults.publishing.lock().unwrap().push((to.to_owned(), fault));
    }

    /// Whether all that was planned has happened.
    pub fn is_through(&self) -> bool {
        self.faults.publishing.lock().unwrap().is_empty() && self.faults.declaring.lock().unwrap().is_empty()
    }

    /// The next declarations fail with these.
    pub fn fail_declaring(&self, errors: impl IntoIterator<Item = BrokerError>) {
        self.faults.declaring.lock().unwrap().extend(errors);
    }

    /// No call gets an answer while the connection is frozen.
    pub fn freeze(&self, frozen: bool) {
        self.faults.frozen.send_replace(frozen);
    }

    /// Passes for a broker that is a server, or for the embedded one.
    pub fn pass_for_embedded(&self, embedded: bool) {
        *self.faults.embedded.lock().unwrap() = Some(embedded);
    }

    /// How often the broker was asked to consume.
    pub fn subscriptions(&self) -> usize {
        *self.faults.subscribing.lock().unwrap()
    }

    /// The routing keys published to, in order, whatever came of it.
    pub fn published(&self) -> Vec<String> {
        self.faults.published.lock().unwrap().clone()
    }

    async fn thawed(&self) {
        self.faults.frozen.subscribe().wait_for(|frozen| !frozen).await.map(drop).unwrap();
    }

    fn fault_for(&self, key: &str) -> Option<Publishing> {
        let mut planned = self.faults.publishing.lock().unwrap();
        planned.iter().position(|(to, _)| key.starts_with(to.as_str())).map(|at| planned.remove(at).1)
    }
}

#[async_trait::async_trait]
impl Broker for FaultyBroker {
    async fn declare(&self, topology: &Topology, mode: DeclareMode) -> Result<(), BrokerError> {
        self.thawed().await;
        let planned = {
            let mut planned = self.faults.declaring.lock().unwrap();
            (!planned.is_empty()).then(|| planned.remove(0))
        };
        match planned {
            Some(error) => Err(error),
            None => self.queues.declare(topology, mode).await,
        }
    }

    async fn consume(&self, request: ConsumeRequest) -> Result<Box<dyn Subscription>, BrokerError> {
        self.thawed().await;
        *self.faults.subscribing.lock().unwrap() += 1;
        self.queues.consume(request).await
    }

    async fn publish(&self, address: &Address, message: &Message) -> Result<(), PublishError> {
        self.thawed().await;
        self.faults.published.lock().unwrap().push(address.routing_key.clone());
        let Some(fault) = self.fault_for(&address.routing_key) else { return self.queues.publish(address, message).await };
        let address = address.clone();
        let reason = "planned".to_owned();
        if matches!(fault, Publishing::UnknownStored | Publishing::CutStored | Publishing::HangStored) {
            self.queues.publish(&address, message).await?;
        }
        match fault {
            Publishing::Refused => Err(PublishError::Refused { address, reason }),
            Publishing::Unroutable => Err(PublishError::Unroutable(address)),
            Publishing::Unavailable => Err(PublishError::Unavailable { address, reason }),
            Publishing::UnknownStored | Publishing::UnknownNotStored => Err(PublishError::Unknown { address, reason }),
            Publishing::CutStored | Publishing::CutNotStored => {
                self.queues.cut_connections();
                Err(PublishError::Unknown { address, reason })
            }
            Publishing::HangStored | Publishing::HangNotStored => std::future::pending().await,
        }
    }

    async fn is_empty(&self, queue: &str) -> Result<bool, BrokerError> {
        self.thawed().await;
        self.queues.is_empty(queue).await
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        self.thawed().await;
        self.queues.ping().await
    }

    async fn close(&self) {
        self.queues.close().await;
    }

    fn frame_max(&self) -> usize {
        self.queues.frame_max()
    }

    fn now(&self) -> SystemTime {
        self.queues.now()
    }

    fn is_embedded(&self) -> bool {
        self.faults.embedded.lock().unwrap().unwrap_or(true)
    }
}
