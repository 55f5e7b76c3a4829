//! What the tests of a running guard share: a scene with a broker, a store and handlers that do as they are told, the journal of what
//! happened, and faults on demand. Everything runs on tokio's paused clock, so hours of waiting cost nothing.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod broker;
mod child;
mod journal;
mod logs;
mod store;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mqguard::{Consumer, Context, DeadLetter, Guard, MemoryBroker, Payload, Publisher, RetryableError, Running, State, consumer};
use serde_json::{Value, json};

pub use broker::{FaultyBroker, Publishing};
pub use child::{Process, is_child};
pub use journal::{Book, End, Happened, Journal, Run};
pub use logs::Logs;
pub use store::{Fault, FaultyStore, Op, identity};

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// How a handler fails when it is told to.
#[derive(Debug, thiserror::Error, RetryableError)]
pub enum Trouble {
    #[error("try again")]
    #[retryable]
    Passing,
    #[error("never")]
    #[fatal]
    Fatal,
    #[error("not yet")]
    #[retryable(after = 0)]
    After(Duration),
}

/// A consumer with a store: lease 10 s, retries after 5, 10 and 20 s.
#[consumer(
    queue = "work",
    retry(max = 3, delay = "5s", factor = 2),
    dlq = "dlq.work",
    idempotent(store = "redis", lease = "10s"),
    prefetch = 20
)]
pub async fn guarded(_body: Value, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

/// The same without a store, on a queue of its own.
#[consumer(queue = "bare", retry(max = 3, delay = "5s", factor = 2), dlq = "dlq.bare", prefetch = 20)]
pub async fn bare(_body: Value, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

type Act = dyn Fn(Run) -> Pin<Box<dyn Future<Output = Result<(), Trouble>> + Send>> + Send + Sync;

/// One process and its surroundings. Clones are the same process; [`Scene::neighbour`] makes another one beside it.
#[derive(Clone)]
pub struct Scene {
    /// What is in the queues.
    pub queues: MemoryBroker,
    /// This process's way to them.
    pub broker: FaultyBroker,
    /// This process's way to the records.
    pub store: FaultyStore,
    /// What happened, in all processes.
    pub journal: Journal,
    process: u32,
    act: Arc<Act>,
}

impl Scene {
    /// A scene whose handlers do as `act` says.
    pub fn new<F>(act: impl Fn(Run) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), Trouble>> + Send + 'static,
    {
        let queues = MemoryBroker::new();
        Self {
            broker: FaultyBroker::over(queues.clone()),
            queues,
            store: FaultyStore::default(),
            journal: Journal::new(),
            process: 1,
            act: Arc::new(move |run| Box::pin(act(run))),
        }
    }

    /// A scene whose handlers succeed at once.
    pub fn smooth() -> Self {
        Self::new(|_| async { Ok(()) })
    }

    /// A scene whose handlers take this long and succeed.
    pub fn lasting(time: Duration) -> Self {
        Self::new(move |_| async move {
            tokio::time::sleep(time).await;
            Ok(())
        })
    }

    /// A scene whose handlers fail in their first `failures` runs of a message, retryably.
    pub fn failing(failures: u32) -> Self {
        Self::new(move |run| async move { if run.n <= failures { Err(Trouble::Passing) } else { Ok(()) } })
    }

    /// Another process on the same queues and records, with faults of its own.
    pub fn neighbour<F>(&self, act: impl Fn(Run) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), Trouble>> + Send + 'static,
    {
        Self {
            broker: FaultyBroker::over(self.queues.clone()),
            store: self.store.beside(),
            process: self.process + 1,
            act: Arc::new(move |run| Box::pin(act(run))),
            ..self.clone()
        }
    }

    /// A guard on this scene, without consumers.
    pub fn guard(&self) -> Guard {
        let journal = self.journal.clone();
        Guard::with_broker(self.broker.clone())
            .store("redis", self.store.clone())
            .state(self.clone())
            .observe(move |event| journal.tell(event))
    }

    /// Starts one consumer.
    pub async fn start<C: Consumer>(&self) -> Running {
        self.guard().consumer::<C>().start().await.unwrap()
    }

    /// Declares what a consumer needs, without running it.
    pub async fn declare<C: Consumer>(&self) {
        self.guard().consumer::<C>().declare().await.unwrap();
    }

    /// Publishes past the faults.
    pub fn publisher(&self) -> Publisher {
        Guard::with_broker(self.queues.clone()).publisher()
    }

    pub async fn publish(&self, queue: &str, id: &str) {
        self.publish_body(queue, id, &json!({ "order_id": "A-1", "amount": 10 })).await;
    }

    pub async fn publish_body(&self, queue: &str, id: &str, body: &Value) {
        self.publisher().json(body).unwrap().message_id(id).to_queue(queue).await.unwrap();
    }

    /// Ends this process as `kill -9` does: nothing of it reaches the broker or the store any more, its deliveries go back.
    pub fn kill(&self) {
        self.store.freeze(true);
        self.broker.freeze(true);
        self.queues.cut_connections();
    }

    /// Runs the handler for one delivery, as told.
    pub async fn play(&self, cx: &Context) -> Result<(), Trouble> {
        let (run, mut entry) = self.journal.begin(cx, self.process);
        let result = (self.act)(run).await;
        entry.end(result.is_ok());
        result
    }

    /// Waits until what was journalled satisfies `reached`; for ten minutes of virtual time at most.
    pub async fn until(&self, what: &str, reached: impl FnMut(&Book) -> bool) {
        self.journal.until(what, reached).await;
    }

    /// The letters in a dead-letter queue.
    pub fn letters(&self, queue: &str) -> Vec<DeadLetter<Value>> {
        self.queues.messages(queue).iter().map(|message| DeadLetter::decode(message).unwrap()).collect()
    }

    /// The reasons and ids of the letters in a dead-letter queue.
    pub fn deaths(&self, queue: &str) -> Vec<(String, String)> {
        let letter =
            |letter: DeadLetter<Value>| (letter.message_id().unwrap_or_default().to_owned(), letter.reason().to_string());
        self.letters(queue).into_iter().map(letter).collect()
    }

    /// Whether nothing of a queue waits or is out: not in the queue, not unsettled, not in a hold queue.
    pub fn is_at_rest(&self, queue: &str) -> bool {
        let holds = format!("{queue}.retry.");
        let names = self.queues.queues().into_iter().filter(|name| name == queue || name.starts_with(&holds));
        names.map(|name| self.queues.depth(&name) + self.queues.unsettled(&name)).sum::<usize>() == 0
    }

    /// Waits until a queue and its hold queues are empty.
    pub async fn at_rest(&self, queue: &str) {
        eventually("the queue is at rest", || self.is_at_rest(queue)).await;
    }
}

/// Waits for a state that nothing announces, looking at it every 10 ms of virtual time, for an hour at most.
pub async fn eventually(what: &str, mut reached: impl FnMut() -> bool) {
    for _ in 0..360_000 {
        if reached() {
            return;
        }
        tokio::time::sleep(ms(10)).await;
    }
    panic!("within an hour it did not come to this: {what}");
}
