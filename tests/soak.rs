//! A steady load, and every few seconds a fault: a worker is killed, the broker is killed and comes back, connections are cut, the store is
//! frozen. A short time by default; `MQGUARD_TEST_SOAK_SECONDS` and `MQGUARD_TEST_SOAK_RATE` (messages a second) say how long and how much.

#![cfg(all(feature = "rabbitmq", feature = "redis", target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

#[path = "harness/child.rs"]
#[allow(dead_code, unreachable_pub, reason = "it serves other tests too")]
mod child;
#[path = "soak/diary.rs"]
mod diary;
#[path = "servers/node.rs"]
#[allow(dead_code, reason = "it serves other tests too")]
mod node;
#[path = "orders/process.rs"]
mod process;
#[path = "servers/proxy.rs"]
#[allow(dead_code, reason = "it serves other tests too")]
mod proxy;
#[path = "redis/server.rs"]
#[allow(dead_code, reason = "it serves other tests too")]
mod redis_server;
#[path = "support/mod.rs"]
mod script;
#[path = "servers/support.rs"]
#[allow(dead_code, reason = "it serves other tests too")]
mod support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mqguard::{Context, EventKind, Guard, Publisher, RetryableError, State, consumer};
use serde::{Deserialize, Serialize};
use tokio::task::{JoinSet, block_in_place};

use child::{Process, is_child};
use diary::{Diary, What};
use node::Node;
use proxy::Proxy;
use redis_server::Server;

const QUEUE: &str = "soak.work";

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Job {
    number: u32,
}

#[derive(Debug, thiserror::Error, RetryableError)]
#[error("not now")]
#[retryable]
struct Passing;

/// Every 100th fails in its first attempt.
#[consumer(
    queue = "soak.work",
    retry(max = 5, delay = "500ms"),
    dlq = "dlq.soak.work",
    idempotent(store = "redis", ttl = "3m", lease = "10s"),
    timeout = "10s",
    prefetch = 200
)]
async fn work(job: Job, diary: State<Arc<Diary>>, cx: Context) -> Result<(), Passing> {
    diary.note(What::Run, job.number);
    if job.number % 100 == 3 && cx.attempt().retries == 0 { Err(Passing) } else { Ok(()) }
}

fn guard(broker: &str, store: &str, diary: &Arc<Diary>) -> Guard {
    let (noted, guard) = (Arc::clone(diary), Guard::connect(broker).expect("a usable URL").store_url(store));
    guard.state(Arc::clone(diary)).consumer::<work>().observe(move |event| {
        let number = event.message_id.and_then(|id| id.strip_prefix("m-")?.parse().ok());
        match (&event.kind, number) {
            (EventKind::Processed { .. }, Some(number)) => noted.note(What::Processed, number),
            (EventKind::Duplicate, Some(number)) => noted.note(What::Duplicate, number),
            _ => {}
        }
    })
}

const VARIABLES: [&str; 3] = ["SOAK_BROKER", "SOAK_STORE", "SOAK_DIARY"];

#[test]
#[ignore = "a process of its own, for the test below"]
fn worker() {
    if !is_child() {
        return;
    }
    let [broker, store, diary] = VARIABLES.map(|name| std::env::var(name).unwrap());
    let diary = Arc::new(Diary::create(Path::new(&diary)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { guard(&broker, &store, &diary).run().await.unwrap() });
}

/// Workers, of which the first is never killed.
struct Workers {
    running: Vec<Process>,
    broker: String,
    store: String,
    diaries: PathBuf,
    started: usize,
}

impl Workers {
    fn start(&mut self) -> Process {
        self.started += 1;
        let diary = self.diaries.join(self.started.to_string());
        let values = [OsStr::new(&self.broker), OsStr::new(&self.store), diary.as_os_str()];
        Process::start_with("worker", VARIABLES.into_iter().zip(values))
    }

    fn replace_one(&mut self) {
        let next = self.start();
        // Dropped, it is killed.
        drop(std::mem::replace(&mut self.running[1], next));
    }
}

/// Publishes so many a second, whatever happens to those before; how many, once all are confirmed.
async fn load(publisher: Publisher, rate: u32, stop: Arc<AtomicBool>) -> u32 {
    let (mut publishes, mut pace, mut count) = (JoinSet::new(), tokio::time::interval(Duration::from_millis(10)), 0);
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        let due = u32::try_from(began.elapsed().as_millis() * u128::from(rate) / 1_000).expect("some millions");
        for number in count..due {
            let publisher = publisher.clone();
            publishes.spawn(async move {
                loop {
                    let draft = publisher.json(&Job { number }).expect("it is JSON").message_id(format!("m-{number}"));
                    match draft.to_queue(QUEUE).await {
                        Ok(_) => return,
                        Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                    }
                }
            });
        }
        count = due.max(count);
        while publishes.try_join_next().is_some() {}
    }
    support::within(publishes.join_all()).await;
    count
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    WorkerKilled,
    BrokerKilled,
    ConnectionsCut,
    StoreFrozen,
}

const FAULTS: [Fault; 4] = [Fault::WorkerKilled, Fault::ConnectionsCut, Fault::StoreFrozen, Fault::BrokerKilled];

/// Kilobytes of memory that a process has.
fn memory(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values[values.len() / 2]
}

fn number(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |number| number.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_steady_load_under_faults_loses_nothing_and_runs_nothing_after_its_success() {
    let (seconds, rate) = (number("MQGUARD_TEST_SOAK_SECONDS", 20), number("MQGUARD_TEST_SOAK_RATE", 200));
    let (mut node, redis, diaries) = (block_in_place(Node::start), Server::start(), tempfile::tempdir().unwrap());
    let (vhost, store) = (node.vhost(), redis.url());
    let proxy = Proxy::to(&vhost);
    let publisher = {
        let scratch = tempfile::NamedTempFile::new().unwrap();
        let guard = guard(&vhost.url(), &store, &Arc::new(Diary::create(scratch.path())));
        support::within(guard.declare()).await.unwrap();
        guard.publisher()
    };
    let (broker, diaries_of) = (proxy.url(&vhost, ""), diaries.path().to_owned());
    let mut workers = Workers { running: Vec::new(), broker, store, diaries: diaries_of, started: 0 };
    workers.running = (0..2).map(|_| workers.start()).collect();

    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn(load(publisher, rate, Arc::clone(&stop)));
    let (began, mut faults, mut resident) = (Instant::now(), BTreeMap::new(), Vec::new());
    let mut dice = fastrand::Rng::with_seed(1);
    while began.elapsed() < Duration::from_secs(seconds.into()) {
        tokio::time::sleep(Duration::from_millis(dice.u64(1_500..4_500))).await;
        resident.push(memory(&workers.running[0]));
        // Each of them once, then any.
        let fault = FAULTS.get(faults.values().sum::<usize>()).copied().unwrap_or_else(|| FAULTS[dice.usize(..FAULTS.len())]);
        *faults.entry(fault).or_insert(0) += 1;
        match fault {
            Fault::WorkerKilled => workers.replace_one(),
            Fault::ConnectionsCut => proxy.cut(),
            Fault::BrokerKilled => block_in_place(|| {
                node.kill();
                node.run();
            }),
            Fault::StoreFrozen => {
                redis.signal("STOP");
                tokio::time::sleep(Duration::from_millis(dice.u64(500..4_000))).await;
                redis.signal("CONT");
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    let published = load.await.expect("all is published");
    let took = began.elapsed();
    block_in_place(|| node.vhost().until_no_backlog(&[]));
    for mut worker in workers.running {
        worker.signal("TERM");
        let (status, _) = block_in_place(|| worker.end());
        assert!(status.success(), "{status}");
    }
    block_in_place(|| node.vhost().until_no_backlog(&[]));

    let entries = diary::read(diaries.path());
    let lost: Vec<u32> = (0..published).filter(|number| !entries.get(number).is_some_and(diary::Entry::has_ended)).collect();
    let too_late = entries.values().filter(|entry| entry.has_run_after_its_success()).count();
    let (early, late) = (&resident[resident.len() / 4..=resident.len() / 2], &resident[3 * resident.len() / 4..]);
    eprintln!(
        "{published} messages in {took:.0?} ({:.0} a second), {} runs, {} duplicates recognised; faults: {faults:?}; lost {}, run after \
         success {too_late}; memory of a worker {} kB, then {} kB",
        f64::from(published) / took.as_secs_f64(),
        entries.values().map(diary::Entry::runs).sum::<usize>(),
        entries.values().map(diary::Entry::duplicates).sum::<u32>(),
        lost.len(),
        median(early),
        median(late),
    );
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(too_late, 0);
    assert_eq!(entries.len(), published as usize);
    if seconds >= 120 {
        assert!(median(late) * 4 <= median(early) * 5, "{resident:?}");
    }
}
