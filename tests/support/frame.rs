//! The size of a message's header frame, counted by hand, and a broker with frames of a size of one's choice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use mqguard::broker::{Address, Broker, BrokerError, ConsumeRequest, DeclareMode, PublishError, Subscription, Topology};
use mqguard::{HeaderValue, Headers, MemoryBroker, Message};

/// The bytes of the frame in which the properties and headers of a message travel.
pub(crate) fn frame_len(message: &Message) -> usize {
    let properties = &message.properties;
    let texts = [
        &properties.message_id,
        &properties.correlation_id,
        &properties.content_type,
        &properties.content_encoding,
        &properties.kind,
        &properties.app_id,
        &properties.user_id,
        &properties.reply_to,
        &properties.expiration,
    ];
    let texts: usize = texts.into_iter().flatten().map(|text| 1 + text.len()).sum();
    let octets = usize::from(properties.priority.is_some()) + usize::from(properties.delivery_mode.is_some());
    let timestamp = if properties.timestamp.is_some() { 8 } else { 0 };
    // Frame: type 1, channel 2, size 4, end 1. Content header: class 2, weight 2, body size 8, flags 2.
    8 + 14 + texts + octets + timestamp + table_len(&message.headers)
}

fn table_len(headers: &Headers) -> usize {
    4 + headers.iter().map(|(name, value)| 1 + name.len() + 1 + value_len(value)).sum::<usize>()
}

fn value_len(value: &HeaderValue) -> usize {
    match value {
        HeaderValue::Void => 0,
        HeaderValue::Bool(_) | HeaderValue::I8(_) | HeaderValue::U8(_) => 1,
        HeaderValue::I16(_) | HeaderValue::U16(_) => 2,
        HeaderValue::I32(_) | HeaderValue::U32(_) | HeaderValue::F32(_) => 4,
        HeaderValue::I64(_) | HeaderValue::F64(_) | HeaderValue::Timestamp(_) => 8,
        HeaderValue::Decimal { .. } => 5,
        HeaderValue::Text(bytes) | HeaderValue::Bytes(bytes) => 4 + bytes.len(),
        HeaderValue::Array(values) => 4 + values.iter().map(|value| 1 + value_len(value)).sum::<usize>(),
        HeaderValue::Table(table) => table_len(table),
        other => panic!("a new type: {other:?}"),
    }
}

/// The embedded broker with another `frame_max`, which counts the messages that are published with a longer header frame, and
/// remembers what is declared.
#[derive(Debug, Clone)]
pub(crate) struct Framed {
    pub(crate) inner: MemoryBroker,
    pub(crate) frame_max: usize,
    pub(crate) too_long: Arc<AtomicUsize>,
    pub(crate) declared: Arc<Mutex<Vec<Topology>>>,
}

impl Framed {
    pub(crate) fn new(frame_max: usize) -> Self {
        Self { inner: MemoryBroker::new(), frame_max, too_long: Arc::default(), declared: Arc::default() }
    }
}

#[async_trait]
impl Broker for Framed {
    async fn declare(&self, topology: &Topology, mode: DeclareMode) -> Result<(), BrokerError> {
        self.declared.lock().expect("nobody panics while declaring").push(topology.clone());
        self.inner.declare(topology, mode).await
    }

    async fn consume(&self, request: ConsumeRequest) -> Result<Box<dyn Subscription>, BrokerError> {
        self.inner.consume(request).await
    }

    async fn publish(&self, address: &Address, message: &Message) -> Result<(), PublishError> {
        if frame_len(message) > self.frame_max {
            self.too_long.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.publish(address, message).await
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        self.inner.ping().await
    }

    async fn close(&self) {
        self.inner.close().await;
    }

    fn frame_max(&self) -> usize {
        self.frame_max
    }

    fn now(&self) -> SystemTime {
        self.inner.now()
    }

    fn is_embedded(&self) -> bool {
        true
    }
}
