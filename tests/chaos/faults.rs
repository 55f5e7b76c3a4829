//! A load in bursts, and in each of them a kill.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mqguard::{DeadLetter, Payload, PublishError, Publisher, Reason};
use tempfile::TempDir;
use tokio::task::{JoinHandle, JoinSet};

use crate::child::Process;
use crate::database::{Kind, Lab};
use crate::ledger::{Ledger, What};
use crate::process::PATIENCE;
use crate::support::{Database, Vhost, take, until, within};
use crate::worker::{self, PARTS, VARIABLES, message_id, number};

/// So many messages for each queue, and one kill.
const BURST: u32 = 50;
/// From one burst to the next, as a rule.
const PAUSE: Duration = Duration::from_millis(1_500);
/// In which nothing is written to the ledger: whatever has not ended by then is stuck.
const QUIET: Duration = Duration::from_secs(20);

pub(crate) struct Run {
    /// Of each queue.
    pub(crate) messages: RangeInclusive<u32>,
    pub(crate) began: Instant,
    pub(crate) kills: u32,
    pub(crate) closures: usize,
    pub(crate) ledger: Ledger,
    pub(crate) lab: Lab,
    /// Its length when the worker started.
    ledger_before: u64,
    random: fastrand::Rng,
    publisher: Publisher,
    worker: Process,
    closing: Option<JoinHandle<()>>,
    vhost: Arc<Vhost>,
    redis: Database,
    directory: TempDir,
}

impl Run {
    /// Declares all queues and starts the first worker.
    pub(crate) async fn begin(seed: u64, messages: RangeInclusive<u32>) -> Self {
        let began = Instant::now();
        let (vhost, redis, lab) = (Arc::new(Vhost::new()), Database::new(), Lab::new(Kind::Postgres).await);
        lab.session().await.must("CREATE TABLE effect (message BIGINT NOT NULL)").await;
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = Ledger::open(directory.path().join("ledger"), u32::MAX);
        let guard = worker::guard(&vhost.url(), &redis.url(), &lab.url(), &ledger);
        guard.declare().await.expect("the queues are declared");
        let publisher = guard.publisher();
        let worker = start(&vhost, &redis, &lab, directory.path(), 0);
        let random = fastrand::Rng::with_seed(seed);
        Self {
            messages,
            began,
            kills: 0,
            closures: 0,
            ledger,
            lab,
            ledger_before: 0,
            random,
            publisher,
            worker,
            closing: None,
            vhost,
            redis,
            directory,
        }
    }

    pub(crate) async fn faults(&mut self) {
        for (burst, first) in self.messages.clone().step_by(BURST as usize).enumerate() {
            let next = tokio::time::Instant::now() + PAUSE;
            self.publish(first).await;
            // A kill while the worker starts would find nothing in progress.
            until("the worker works", || self.ledger.len() > self.ledger_before);
            if burst % 4 == 1 {
                self.close_connections().await;
            }
            // Most of them in the thick of the burst.
            let moment = if self.random.f64() < 0.6 { self.random.u64(0..60) } else { self.random.u64(60..1_200) };
            tokio::time::sleep(Duration::from_millis(moment)).await;
            self.worker.signal("KILL");
            self.worker.end();
            self.kills += 1;
            self.start_again();
            tokio::time::sleep_until(next).await;
        }
        if let Some(closing) = self.closing.take() {
            closing.await.expect("they are closed");
        }
    }

    fn start_again(&mut self) {
        self.ledger_before = self.ledger.len();
        self.worker = start(&self.vhost, &self.redis, &self.lab, self.directory.path(), self.kills);
    }

    /// Has the broker close all connections, in a second or two: `rabbitmqctl` takes its time.
    async fn close_connections(&mut self) {
        if let Some(closing) = self.closing.take() {
            closing.await.expect("they are closed");
        }
        self.closures += 1;
        let vhost = Arc::clone(&self.vhost);
        self.closing = Some(tokio::task::spawn_blocking(move || {
            let url = vhost.url();
            let name = url.rsplit('/').next().expect("the virtual host at its end");
            vhost.ctl(&["--quiet", "close_all_connections", "--vhost", name, "chaos"]);
        }));
    }

    /// Publishes the messages of a burst to each queue, some of them twice.
    async fn publish(&self, first: u32) {
        let mut publishing = JoinSet::new();
        for message in first..first + BURST {
            for queue in PARTS {
                let publisher = self.publisher.clone();
                publishing.spawn(async move {
                    for _ in 0..if message % 20 == 7 { 2 } else { 1 } {
                        publish_until_confirmed(&publisher, queue, message).await;
                    }
                });
            }
        }
        while let Some(published) = publishing.join_next().await {
            published.expect("it is published");
        }
    }

    /// Waits until every message has ended, and ends the worker. What is stuck is for the audit to tell.
    pub(crate) async fn finish(&mut self) {
        let (mut len, mut since) = (0, Instant::now());
        while self.count_ended() < PARTS.len() * self.messages.clone().count() && since.elapsed() < QUIET {
            if self.ledger.len() > len {
                (len, since) = (self.ledger.len(), Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let letters = PARTS.map(|queue| format!("dlq.{queue}"));
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        // Acknowledgements are not answered: what was among the last may be there again when the worker has ended.
        let end = Instant::now() + PATIENCE;
        loop {
            self.vhost.until_no_backlog(&letters);
            self.worker.signal("TERM");
            assert!(self.worker.end().0.success(), "the last worker ends well");
            if self.vhost.backlog(&letters).is_empty() {
                return;
            }
            assert!(Instant::now() < end, "messages are left again and again");
            self.start_again();
        }
    }

    fn count_ended(&self) -> usize {
        let lines = self.ledger.lines();
        let ended = lines.iter().filter(|line| matches!(line.what, What::Processed | What::Ended));
        ended.map(|line| (&line.queue, line.message)).collect::<std::collections::BTreeSet<_>>().len()
    }

    /// The letters of a queue, each with its reason; no two of them are of the same failure, so a repeated one is a copy.
    pub(crate) async fn letters(&self, queue: &str) -> Vec<(u32, Reason)> {
        let letters = format!("dlq.{queue}");
        let count = self.vhost.backlog(&[]).get(&letters).copied().unwrap_or_default();
        let taken = take(&self.vhost.broker(), &letters, usize::try_from(count).expect("few")).await;
        let decoded = taken.iter().map(|delivery| DeadLetter::<u32>::decode(&delivery.message).expect("a letter"));
        decoded.map(|letter| (number(letter.message_id().expect("its id")), letter.reason())).collect()
    }
}

fn start(vhost: &Vhost, redis: &Database, lab: &Lab, directory: &Path, process: u32) -> Process {
    let (broker, redis, postgres) = (vhost.url(), redis.url(), lab.url());
    let (ledger, process) = (directory.join("ledger").display().to_string(), process.to_string());
    let values = [&broker, &redis, &postgres, &ledger, &process];
    let environment: Vec<(&str, &str)> = VARIABLES.into_iter().zip(values.map(String::as_str)).collect();
    Process::start("process_that_consumes", &environment)
}

/// A publish whose answer was lost is repeated: if both arrived, one is a duplicate.
async fn publish_until_confirmed(publisher: &Publisher, queue: &str, message: u32) {
    let publish = async {
        loop {
            let draft = publisher.json(&message).expect("a number").message_id(message_id(message));
            match draft.to_queue(queue).await {
                Err(PublishError::Unknown { .. } | PublishError::Unavailable { .. }) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                result => break result.expect("the broker takes it"),
            }
        }
    };
    within(publish).await;
}
