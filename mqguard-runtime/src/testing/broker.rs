use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use super::fault::Fault;
use super::process::Process;
use super::step::StepKind;
use super::subscription::ProcessSubscription;
use super::world::{World, id_of};
use crate::broker::{Address, Broker, BrokerError, ConsumeRequest, DeclareMode, Message, PublishError, Subscription, Topology};

/// A process's way to the world's broker: counts each step, and lets go wrong what is planned.
#[derive(Clone)]
pub(super) struct ProcessBroker {
    pub(super) world: Arc<World>,
    pub(super) process: Arc<Process>,
}

/// The same in each run, or names that tell the hour would not be.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);

impl ProcessBroker {
    /// What happens with a call that `apply` makes, under the planned fault.
    async fn call<T>(
        &self,
        kind: StepKind,
        what: String,
        apply: impl Future<Output = Result<T, BrokerError>> + Send,
    ) -> Result<T, BrokerError> {
        if self.process.is_dead() {
            return Err(dead());
        }
        let begun = self.world.begin(&self.process, kind, what);
        let lost = || BrokerError::Unavailable("the connection was lost".into());
        let applies = !begun.fault.is_some_and(Fault::prevents);
        let result = if applies { apply.await } else { Err(lost()) };
        self.world.end(begun, result.as_ref().map_or_else(ToString::to_string, |_| "done".into()));
        match begun.fault {
            None => result,
            Some(Fault::CrashBefore | Fault::CrashAfter) => {
                self.world.kill(&self.process);
                Err(dead())
            }
            Some(_) => {
                self.process.cut();
                Err(lost())
            }
        }
    }
}

pub(super) fn dead() -> BrokerError {
    BrokerError::Unavailable("the process is dead".into())
}

#[async_trait]
impl Broker for ProcessBroker {
    async fn declare(&self, topology: &Topology, mode: DeclareMode) -> Result<(), BrokerError> {
        let names: Vec<&str> = topology.queues.iter().map(|queue| queue.name.as_str()).collect();
        let what = format!("declare {}", names.join(", "));
        self.world.declared(topology);
        self.call(StepKind::Declare, what, self.process.broker.declare(topology, mode)).await
    }

    async fn consume(&self, request: ConsumeRequest) -> Result<Box<dyn Subscription>, BrokerError> {
        let queue = request.queue.clone();
        let consuming = self.process.broker.consume(request);
        let is_main = self.world.known.home(&queue) == queue;
        let inner = self.call(StepKind::Consume, format!("consume {queue}"), consuming).await?;
        if is_main {
            self.process.subscribed();
        }
        // The world may be at rest from here on.
        self.world.changed.notify_waiters();
        Ok(Box::new(ProcessSubscription { inner, queue, broker: self.clone() }))
    }

    async fn publish(&self, address: &Address, message: &Message) -> Result<(), PublishError> {
        if self.process.is_dead() {
            return std::future::pending().await;
        }
        let what = format!("publish to {} of {}", address.routing_key, id_of(message));
        let begun = self.world.begin(&self.process, StepKind::Publish, what);
        let applies = !begun.fault.is_some_and(Fault::prevents);
        let result = if applies { self.process.broker.publish(address, message).await } else { Ok(()) };
        if applies && result.is_ok() {
            self.world.stored(address, message);
        }
        let outcome = if applies { "stored" } else { "not stored" };
        self.world.end(begun, result.as_ref().map_or_else(ToString::to_string, |()| outcome.into()));
        let (address, reason) = (address.clone(), "planned".to_owned());
        match begun.fault {
            Some(Fault::CrashBefore | Fault::CrashAfter) => {
                self.world.kill(&self.process);
                std::future::pending().await
            }
            Some(Fault::RequestLost) => Err(PublishError::Unavailable { address, reason }),
            Some(Fault::ConnectionLostBefore | Fault::ConnectionLostAfter) => {
                self.process.cut();
                Err(PublishError::Unknown { address, reason })
            }
            Some(_) => Err(PublishError::Unknown { address, reason }),
            None => result,
        }
    }

    /// No step: where nothing is done, nothing can go wrong.
    async fn is_empty(&self, queue: &str) -> Result<bool, BrokerError> {
        if self.process.is_dead() { Err(dead()) } else { self.process.broker.is_empty(queue).await }
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        if self.process.is_dead() { Err(dead()) } else { self.process.broker.ping().await }
    }

    async fn close(&self) {}

    fn frame_max(&self) -> usize {
        self.process.broker.frame_max()
    }

    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + EPOCH + self.world.now()
    }

    fn is_embedded(&self) -> bool {
        true
    }
}

impl fmt::Debug for ProcessBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessBroker").field("process", &self.process.number).finish_non_exhaustive()
    }
}
