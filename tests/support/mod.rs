//! A guard on an embedded broker, and a message that says how its handler shall fare.

#![allow(dead_code, unused_imports, reason = "each test file uses a part of this")]

mod frame;
mod log;

use std::sync::mpsc;
use std::time::Duration;

use mqguard::broker::Broker;
use mqguard::{Context, DeadLetter, Guard, MemoryBroker, Message, Payload, Publisher, RetryableError, Running};
use serde::{Deserialize, Serialize};

pub(crate) use frame::{Framed, frame_len};
pub(crate) use log::{Log, Run, Seen, What};

pub(crate) const QUEUE: &str = "order.process";
pub(crate) const DLQ: &str = "dlq.order.process.fail";

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A message that says what its runs come to: one step for each, the last again for those that follow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Step {
    Succeed,
    /// Succeed after this many milliseconds.
    Take(u64),
    Fail,
    FailForGood,
    /// Fail and ask for another run after this many milliseconds, which counts.
    After(u64),
    /// Fail and ask for another run after this many milliseconds, which does not count.
    Later(u64),
    Panic,
}

#[derive(Debug, thiserror::Error, RetryableError)]
pub(crate) enum Trouble {
    #[error("db-{0} is away")]
    #[retryable]
    Passing(u32),
    #[error("no such order")]
    #[fatal]
    Final,
    #[error("again in {wait:?}")]
    #[retryable(after = wait)]
    After { wait: Duration },
    #[error("not before {wait:?}")]
    #[retryable(after = wait, uncounted)]
    Later { wait: Duration },
}

impl Job {
    /// What a handler does with it. The n-th run fails with `db-n is away`.
    pub(crate) async fn carry_out(&self, log: &Log, cx: &Context) -> Result<(), Trouble> {
        let before = log.times(&self.name).len();
        log.ran(&self.name, cx);
        let attempt = usize::try_from(cx.attempt().retries.saturating_add(cx.attempt().deferrals)).unwrap_or(usize::MAX);
        let step = self.steps.get(attempt).or(self.steps.last()).copied().unwrap_or(Step::Succeed);
        match step {
            Step::Succeed => Ok(()),
            Step::Take(ms) => {
                tokio::time::sleep(millis(ms)).await;
                Ok(())
            }
            Step::Fail => Err(Trouble::Passing(u32::try_from(before).unwrap_or(u32::MAX) + 1)),
            Step::FailForGood => Err(Trouble::Final),
            Step::After(ms) => Err(Trouble::After { wait: millis(ms) }),
            Step::Later(ms) => Err(Trouble::Later { wait: millis(ms) }),
            Step::Panic => panic!("boom"),
        }
    }
}

/// A running guard, the broker that it runs on, and the log that its handlers write as `State<Log>`.
pub(crate) struct Rig {
    pub(crate) broker: MemoryBroker,
    pub(crate) log: Log,
    pub(crate) publisher: Publisher,
    running: Running,
    _watchdog: Watchdog,
}

impl Rig {
    /// Starts a guard with what `build` adds.
    pub(crate) async fn start(build: impl FnOnce(Guard) -> Guard) -> Self {
        let broker = MemoryBroker::new();
        Self::on(broker.clone(), broker, build).await
    }

    /// The same on `outer`, which is `broker` or wraps it.
    pub(crate) async fn on(outer: impl Broker, broker: MemoryBroker, build: impl FnOnce(Guard) -> Guard) -> Self {
        let watchdog = Watchdog::new();
        let log = Log::new();
        let guard = build(log.attach(Guard::with_broker(outer)));
        let publisher = guard.publisher();
        let running = guard.start().await.expect("the guard starts");
        Self { broker, log, publisher, running, _watchdog: watchdog }
    }

    /// Publishes a job to a queue under its name as message id.
    pub(crate) async fn publish(&self, queue: &str, name: &str, steps: &[Step]) {
        self.publish_with(queue, name, steps, |_| {}).await;
    }

    pub(crate) async fn publish_with(&self, queue: &str, name: &str, steps: &[Step], change: impl FnOnce(&mut Message)) {
        let job = Job { name: name.into(), steps: steps.into() };
        let draft = self.publisher.json(&job).expect("a job is JSON");
        draft.message_id(name).with(change).to_queue(queue).await.expect("the queue is there");
    }

    /// Publishes a body as it is.
    pub(crate) async fn publish_raw(&self, queue: &str, id: &str, body: impl Into<Vec<u8>>) {
        self.publisher.bytes(body.into()).message_id(id).to_queue(queue).await.expect("the queue is there");
    }

    /// The letters in a queue, now.
    pub(crate) fn letters(&self, queue: &str) -> Vec<DeadLetter<serde_json::Value>> {
        let read = |message| DeadLetter::decode(&message).expect("every message can be read as a letter");
        self.broker.messages(queue).into_iter().map(read).collect()
    }

    /// The one letter in a queue, once the message `id` is one.
    pub(crate) async fn letter_of(&self, id: &str, queue: &str) -> DeadLetter<serde_json::Value> {
        self.log.until(|log| log.letters() > 0 && log.ended(id)).await;
        let mut letters: Vec<_> = self.letters(queue);
        letters.retain(|letter| letter.message_id() == Some(id));
        assert_eq!(letters.len(), 1, "letters of {id} in {queue}: {letters:?}");
        letters.remove(0)
    }

    /// Asserts that nothing is left in any queue but what `except` names with its depth.
    pub(crate) fn assert_empty_but(&self, except: &[(&str, usize)]) {
        let depths: Vec<(String, usize)> =
            self.broker.queues().into_iter().map(|queue| (queue.clone(), self.broker.depth(&queue))).collect();
        let left: Vec<(&str, usize)> =
            depths.iter().filter(|(_, depth)| *depth > 0).map(|(queue, depth)| (queue.as_str(), *depth)).collect();
        assert_eq!(left, except);
        assert_eq!(self.unsettled(), 0, "unsettled deliveries");
    }

    fn unsettled(&self) -> usize {
        self.broker.queues().iter().map(|queue| self.broker.unsettled(queue)).sum()
    }

    /// Lets an hour pass, to show that nothing more happens.
    pub(crate) async fn let_an_hour_pass(&self) {
        tokio::time::sleep(seconds(3600)).await;
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.running.health().is_healthy()
    }

    pub(crate) async fn shutdown(self) {
        self.running.shutdown().await.expect("the guard ends well");
    }
}

/// Ends the process when a test takes too long: a paused clock stands still in a busy loop, so no timeout on it would ever end.
struct Watchdog {
    _alive: mpsc::Sender<()>,
}

impl Watchdog {
    fn new() -> Self {
        let (alive, watched) = mpsc::channel::<()>();
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        std::thread::spawn(move || {
            if watched.recv_timeout(seconds(120)) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{test}: still busy after 120 s");
                std::process::exit(101);
            }
        });
        Self { _alive: alive }
    }
}
