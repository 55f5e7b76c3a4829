//! A cluster of three RabbitMQ nodes that loses one after another, under a steady load. `MQGUARD_TEST_CLUSTER_FAULTS` says how many times.

#![cfg(all(feature = "rabbitmq", feature = "redis", unix))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

#[path = "cluster/journal.rs"]
mod journal;
#[path = "servers/node.rs"]
#[allow(dead_code, reason = "it serves other tests too")]
mod node;
#[path = "cluster/nodes.rs"]
mod nodes;
#[path = "orders/process.rs"]
mod process;
#[path = "redis/server.rs"]
#[allow(dead_code, reason = "it serves other tests too")]
mod redis_server;
#[path = "support/mod.rs"]
mod script;
#[path = "servers/support.rs"]
#[allow(dead_code, reason = "it serves other tests too")]
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mqguard::broker::{Broker, ConsumeRequest, RabbitMq, Settlement};
use mqguard::{Guard, Publisher, RetryableError, State, consumer};
use serde::{Deserialize, Serialize};
use tokio::task::{JoinSet, block_in_place};

use journal::Journal;
use nodes::Cluster;
use support::{Database, within};

const QUEUE: &str = "cluster.work";
const DLQ: &str = "dlq.cluster.work";

/// What a node had dead-lettered and not confirmed when another died is sent again after a time that these nodes have set to 5 s, perhaps
/// more than once.
const RESENT: Duration = Duration::from_secs(180);

/// Between two messages.
const PACE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Job {
    number: u32,
}

#[derive(Debug, thiserror::Error, RetryableError)]
enum Trouble {
    #[error("not now")]
    #[retryable]
    Passing,
    #[error("never")]
    #[fatal]
    Final,
}

/// Every 10th fails in its first run, every 50th for good.
#[consumer(
    queue = "cluster.work",
    retry(max = 5, delay = "500ms"),
    dlq = "dlq.cluster.work",
    idempotent = "redis",
    prefetch = 50
)]
async fn work(job: Job, journal: State<Journal>) -> Result<(), Trouble> {
    let run = journal.run(job.number);
    tokio::time::sleep(Duration::from_millis(5)).await;
    match job.number {
        number if is_refused(number) => Err(Trouble::Final),
        number if number % 10 == 3 && run == 1 => Err(Trouble::Passing),
        number => {
            journal.succeeded(number);
            Ok(())
        }
    }
}

fn is_refused(number: u32) -> bool {
    number % 50 == 7
}

/// Which node is killed.
#[derive(Debug, Clone, Copy)]
enum Victim {
    /// The one that is consumed from.
    ConsumedFrom,
    /// The one that leads the queue.
    Leader,
}

/// Publishes one message after another, whatever happens to those before; how many, once it is told to stop and all are confirmed.
async fn load(publisher: Publisher, journal: Journal, stop: Arc<AtomicBool>) -> u32 {
    let (mut publishes, mut pace, mut count) = (JoinSet::new(), tokio::time::interval(PACE), 0);
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        let (publisher, journal, number) = (publisher.clone(), journal.clone(), count);
        count += 1;
        publishes.spawn(async move {
            journal.published(number);
            loop {
                let draft = publisher.json(&Job { number }).expect("it is JSON").message_id(format!("m-{number}"));
                match draft.to_queue(QUEUE).await {
                    Ok(_) => return,
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        });
        while publishes.try_join_next().is_some() {}
    }
    within(publishes.join_all()).await;
    count
}

/// The messages that there are letters of, and how many letters are second ones.
async fn letters(url: &str, expected: &BTreeSet<String>) -> (BTreeSet<String>, usize) {
    let broker = RabbitMq::new(url).expect("a usable URL");
    let request = ConsumeRequest { queue: DLQ.into(), tag: "test".into(), prefetch: 100 };
    let mut subscription = within(broker.consume(request)).await.expect("the queue is there");
    let (mut found, mut second) = (BTreeSet::new(), 0);
    loop {
        // After the last one, nothing comes for a moment.
        let limit = if found.is_superset(expected) { Duration::from_millis(500) } else { process::PATIENCE };
        let Ok(delivery) = tokio::time::timeout(limit, subscription.next()).await else { break };
        let delivery = delivery.expect("the connection holds");
        second += usize::from(!found.insert(delivery.message.properties.message_id.clone().unwrap_or_default()));
        delivery.receipt.settle(Settlement::Ack);
    }
    within(subscription.close()).await.expect("it closes");
    broker.close().await;
    (found, second)
}

/// Kills a node, waits until messages are processed again, and brings the node back; how long it took from its death until a message was
/// processed that was published after it.
async fn fault(cluster: &mut Cluster, journal: &Journal, victim: Victim) -> Duration {
    let node = block_in_place(|| match victim {
        Victim::ConsumedFrom => cluster.consumed_from(QUEUE),
        Victim::Leader => cluster.leader(QUEUE),
    });
    let killed = Instant::now();
    block_in_place(|| cluster.kill(node));
    let recovered = within(journal.processed_after(killed)).await.duration_since(killed);
    eprintln!("node {} killed ({victim:?}): a message processed after {recovered:?}", node + 1);
    block_in_place(|| cluster.restart(node));
    recovered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_cluster_that_loses_nodes_loses_no_message() {
    let faults = std::env::var("MQGUARD_TEST_CLUSTER_FAULTS").map_or(4, |faults| faults.parse().expect("a number"));
    let (mut cluster, database, journal) = (block_in_place(Cluster::start), Database::new(), Journal::new());
    let (url, see) = (cluster.url(), journal.clone());
    let guard = Guard::connect(&url).expect("a usable URL").store_url(&database.url());
    let guard = guard.state(journal.clone()).observe(move |event| see.see(event)).consumer::<work>();
    let publisher = guard.publisher();
    let running = within(guard.start()).await.expect("the guard starts");
    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn(load(publisher, journal.clone(), Arc::clone(&stop)));
    within(journal.processed_after(Instant::now())).await;

    let mut recovered = Vec::new();
    for victim in [Victim::ConsumedFrom, Victim::Leader].into_iter().cycle().take(faults) {
        recovered.push(fault(&mut cluster, &journal, victim).await);
    }
    stop.store(true, Ordering::Relaxed);
    let count = load.await.expect("all is published");
    let stopped = Instant::now();
    if tokio::time::timeout(RESENT, journal.ended(count)).await.is_err() {
        let open: Vec<_> = journal.entries().into_iter().filter(|(_, entry)| !entry.has_ended()).take(10).collect();
        panic!("in the queues: {:?}; {:?}; open: {open:?}", cluster.vhost(0).backlog(&[]), running.health());
    }
    eprintln!("the last one ended {:?} after the load", stopped.elapsed());
    block_in_place(|| cluster.vhost(0).until_no_backlog(&[DLQ]));
    within(running.shutdown()).await.expect("the guard ends well");

    let entries = journal.entries();
    let sum = |of: fn(&journal::Entry) -> u32| entries.values().map(of).sum::<u32>();
    recovered.sort();
    let (median, worst) = (recovered[recovered.len() / 2], recovered[recovered.len() - 1]);
    let refused: BTreeSet<String> = (0..count).filter(|number| is_refused(*number)).map(|number| format!("m-{number}")).collect();
    let (letters, second) = letters(&url, &refused).await;
    eprintln!(
        "{count} messages, {} duplicates recognised, {second} second letters; recovery {median:?} in the median, {worst:?} at worst",
        sum(|entry| entry.duplicates)
    );
    assert_eq!(letters, refused);
    for (number, entry) in &entries {
        let successes = u32::from(!is_refused(*number));
        assert_eq!((entry.successes, entry.too_late), (successes, 0), "message {number}: {entry:?}");
        assert_eq!(entry.processed.is_some(), successes == 1, "message {number}: {entry:?}");
    }
    assert!(worst < Duration::from_secs(30), "{recovered:?}");
}
