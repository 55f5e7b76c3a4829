//! What every part of the suite stands on.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use mqguard::broker::{
    Address, Binding, Broker, ConsumeRequest, DeadLetterTarget, DeclareMode, Delivery, Exchange, ExchangeKind, HeaderValue,
    Headers, MemoryBroker, Message, Queue, QueueType, Settlement, Subscription, Topology,
};
use tokio::time::timeout;

/// How long something that has to happen may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How long nothing may happen to be taken for never. A broker answers within a few milliseconds.
const QUIET: Duration = Duration::from_millis(500);

/// Both types: what a test does with queues has to work with either.
pub const BOTH: [QueueType; 2] = [QueueType::Quorum, QueueType::Classic];

/// A broker, and names on it that are this test's alone.
pub struct Bench {
    pub broker: Arc<dyn Broker>,
    prefix: String,
    /// What to delete at the end.
    pub queues: Mutex<Vec<String>>,
    pub exchanges: Mutex<Vec<String>>,
}

impl Bench {
    pub fn new(broker: Arc<dyn Broker>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let prefix = format!("mqguard-test-{now}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { broker, prefix, queues: Mutex::default(), exchanges: Mutex::default() }
    }

    /// A name for a queue. The queue is deleted at the end.
    pub fn name(&self, name: &str) -> String {
        let mut queues = self.queues.lock().unwrap();
        let name = format!("{}-{}-{name}", self.prefix, queues.len());
        queues.push(name.clone());
        name
    }

    /// A queue of this type that is not declared yet.
    pub fn plain(&self, queue_type: QueueType) -> Queue {
        Queue::new(self.name("q"), queue_type)
    }

    /// Declares a queue without arguments and tells its name.
    pub async fn queue(&self, queue_type: QueueType) -> String {
        let queue = self.plain(queue_type);
        self.declare([queue.clone()]).await;
        queue.name
    }

    /// Declares queues.
    pub async fn declare(&self, queues: impl IntoIterator<Item = Queue>) {
        let topology = Topology { queues: queues.into_iter().collect(), ..Topology::default() };
        self.broker.declare(&topology, DeclareMode::Declare).await.unwrap();
    }

    /// Declares an exchange, with queues bound to it by these keys, and tells its name. The exchange is deleted at the end.
    pub async fn exchange(&self, kind: ExchangeKind, bindings: &[(&str, &str)]) -> String {
        let name = {
            let mut exchanges = self.exchanges.lock().unwrap();
            let name = format!("{}-{}-x", self.prefix, exchanges.len());
            exchanges.push(name.clone());
            name
        };
        let bindings =
            bindings.iter().map(|&(queue, key)| Binding { queue: queue.into(), exchange: name.clone(), routing_key: key.into() });
        let topology = Topology {
            exchanges: vec![Exchange { name: name.clone(), kind }],
            bindings: bindings.collect(),
            ..Topology::default()
        };
        self.broker.declare(&topology, DeclareMode::Declare).await.unwrap();
        name
    }

    /// Publishes a text to a queue.
    pub async fn send(&self, queue: &str, body: &str) {
        self.publish(&Address::queue(queue), &message(body)).await;
    }

    /// Publishes a message.
    pub async fn publish(&self, address: &Address, message: &Message) {
        within(self.broker.publish(address, message)).await.unwrap();
    }

    /// Consumes a queue.
    pub async fn consume(&self, queue: &str, prefetch: u16) -> Consumer {
        let request = ConsumeRequest { queue: queue.into(), tag: "conformance".into(), prefetch };
        Consumer(within(self.broker.consume(request)).await.unwrap())
    }

    #[cfg(feature = "rabbitmq")]
    /// Consumes a queue that may not be there.
    pub async fn try_consume(&self, queue: &str) -> Result<Consumer, mqguard::broker::BrokerError> {
        let request = ConsumeRequest { queue: queue.into(), tag: "conformance".into(), prefetch: 10 };
        within(self.broker.consume(request)).await.map(Consumer)
    }

    /// Consumes a queue for a moment and tells the bodies of all that is in it. They are acked.
    pub async fn drain(&self, queue: &str) -> Vec<String> {
        let mut consumer = self.consume(queue, 100).await;
        let mut bodies = Vec::new();
        while let Some(delivery) = consumer.next_if_any().await {
            bodies.push(body(&delivery));
            delivery.receipt.settle(Settlement::Ack);
        }
        consumer.close().await;
        bodies
    }
}

/// A subscription whose mistakes fail the test.
pub struct Consumer(Box<dyn Subscription>);

impl Consumer {
    /// The next delivery, which has to come.
    pub async fn next(&mut self) -> Delivery {
        within(self.0.next()).await.unwrap()
    }

    /// The next delivery, when one comes.
    pub async fn next_if_any(&mut self) -> Option<Delivery> {
        timeout(QUIET, self.0.next()).await.ok().map(Result::unwrap)
    }

    /// Several deliveries, which have to come.
    pub async fn take(&mut self, count: usize) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        while deliveries.len() < count {
            deliveries.push(self.next().await);
        }
        deliveries
    }

    /// Takes and acks a delivery and tells its body.
    pub async fn accept(&mut self) -> String {
        let delivery = self.next().await;
        let body = body(&delivery);
        delivery.receipt.settle(Settlement::Ack);
        body
    }

    /// No delivery may come.
    #[track_caller]
    pub fn nothing(&mut self) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            if let Some(delivery) = self.next_if_any().await {
                panic!("at {caller}: expected no delivery, got {:?}", body(&delivery));
            }
        }
    }

    /// Waits for the end of the subscription and tells why it ended.
    pub async fn ended(&mut self) -> mqguard::broker::BrokerError {
        loop {
            match within(self.0.next()).await {
                Ok(delivery) => drop(delivery),
                Err(error) => return error,
            }
        }
    }

    #[cfg(feature = "rabbitmq")]
    pub fn into_inner(self) -> Box<dyn Subscription> {
        self.0
    }

    pub async fn cancel(&mut self) {
        for left in within(self.0.cancel()).await.unwrap() {
            left.receipt.settle(Settlement::Return);
        }
    }

    pub async fn close(self) {
        within(self.0.close()).await.unwrap();
    }
}

/// What happens in time.
#[track_caller]
pub fn within<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move { timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("at {caller}: did not happen within {PATIENCE:?}")) }
}

pub fn message(body: &str) -> Message {
    Message { body: body.as_bytes().to_vec().into(), ..Message::default() }
}

pub fn body(delivery: &Delivery) -> String {
    String::from_utf8_lossy(&delivery.message.body).into_owned()
}

/// Dead letters go to this queue.
pub fn dead_letters_to(queue: &str) -> Option<DeadLetterTarget> {
    Some(DeadLetterTarget { exchange: String::new(), routing_key: queue.into() })
}

/// An entry of `x-death`, newest first.
pub fn death(headers: &Headers, index: usize) -> &Headers {
    let deaths = headers.get("x-death").and_then(HeaderValue::as_array).expect("x-death is an array");
    deaths[index].as_table().expect("an entry of x-death is a table")
}

/// Runs a part of the suite on the embedded broker.
pub async fn memory(test: impl AsyncFn(&Bench) + 'static) {
    let bench = Bench::new(Arc::new(MemoryBroker::new()));
    test(&bench).await;
}
