//! A letter whose publishing is interrupted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod support;

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use mqguard::broker::{Address, Broker, BrokerError, ConsumeRequest, DeclareMode, PublishError, Subscription, Topology};
use mqguard::{Context, MemoryBroker, Message, Reason, State, consumer};
use tokio::sync::Semaphore;

use support::{Job, Log, Rig, Step, Trouble, seconds};

/// An embedded broker that takes as many letters as there are permits; a publish beyond them waits.
#[derive(Debug, Clone)]
struct Slow {
    broker: MemoryBroker,
    permits: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

#[async_trait]
impl Broker for Slow {
    async fn publish(&self, address: &Address, message: &Message) -> Result<(), PublishError> {
        if address.exchange == "dlx.exchange" {
            self.waiting.add_permits(1);
            self.permits.acquire().await.unwrap().forget();
        }
        self.broker.publish(address, message).await
    }

    async fn declare(&self, topology: &Topology, mode: DeclareMode) -> Result<(), BrokerError> {
        self.broker.declare(topology, mode).await
    }

    async fn consume(&self, request: ConsumeRequest) -> Result<Box<dyn Subscription>, BrokerError> {
        self.broker.consume(request).await
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        self.broker.ping().await
    }

    async fn close(&self) {
        self.broker.close().await;
    }

    fn frame_max(&self) -> usize {
        self.broker.frame_max()
    }

    fn now(&self) -> SystemTime {
        self.broker.now()
    }

    fn is_embedded(&self) -> bool {
        true
    }
}

#[consumer(queue = "interrupted", idempotent(store = "memory", lease = "30s"), dlq = "dlq.interrupted")]
async fn interrupted(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// Whoever gets the delivery next sends the letter, and need not wait for the end of a lease that nobody keeps.
#[tokio::test(start_paused = true)]
async fn a_letter_that_a_lost_connection_interrupts_is_sent_at_once() {
    let broker = MemoryBroker::new();
    let slow = Slow { broker: broker.clone(), permits: Arc::new(Semaphore::new(0)), waiting: Arc::new(Semaphore::new(0)) };
    let rig = Rig::on(slow.clone(), broker.clone(), |guard| guard.consumer::<interrupted>()).await;
    rig.publish("interrupted", "A", &[Step::FailForGood]).await;
    slow.waiting.acquire().await.unwrap().forget();
    broker.cut_connections();
    slow.permits.add_permits(10);
    let cut = rig.log.now();
    let letter = rig.letter_of("A", "dlq.interrupted").await;
    assert!(rig.log.end_of("A").unwrap() - cut < seconds(1), "{:?}", rig.log.seen());
    assert_eq!((letter.reason(), letter.runs(), rig.log.count()), (Reason::Fatal, 1, 1));
    rig.let_an_hour_pass().await;
    rig.assert_empty_but(&[("dlq.interrupted", 1)]);
}
