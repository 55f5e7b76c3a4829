use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;

use super::world::{World, id_of};
use crate::broker::{Address, Broker, BrokerError, ConsumeRequest, DeclareMode, Message, PublishError, Subscription, Topology};

/// The way to the queues of whoever publishes: nothing goes wrong on it, and what was taken is written down.
pub(super) struct Producer(pub(super) Arc<World>);

#[async_trait]
impl Broker for Producer {
    async fn publish(&self, address: &Address, message: &Message) -> Result<(), PublishError> {
        let world = &self.0;
        let depths = || world.known.business().map(|spec| world.queues.depth(spec.queue)).collect::<Vec<_>>();
        let before = depths();
        // The embedded broker does not wait in this, so nobody takes the message before it is counted.
        world.queues.publish(address, message).await?;
        let grown = world.known.business().zip(before.iter().zip(depths())).filter(|(_, (before, after))| *before < after);
        for (spec, _) in grown {
            if let Some(name) = world.known.name(spec.queue, message) {
                world.book().published.entry(name).or_default().insert(id_of(message).to_owned());
            }
        }
        Ok(())
    }

    async fn declare(&self, topology: &Topology, mode: DeclareMode) -> Result<(), BrokerError> {
        self.0.queues.declare(topology, mode).await
    }

    async fn consume(&self, request: ConsumeRequest) -> Result<Box<dyn Subscription>, BrokerError> {
        self.0.queues.consume(request).await
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        Ok(())
    }

    async fn close(&self) {}

    fn frame_max(&self) -> usize {
        self.0.queues.frame_max()
    }

    fn now(&self) -> SystemTime {
        self.0.queues.now()
    }

    fn is_embedded(&self) -> bool {
        true
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Producer")
    }
}
