//! What happens to a whole broker: frozen, killed, short of memory, impatient. Each test has a node of its own.

use std::time::{Duration, Instant};

use mqguard::{Context, State, Status, consumer};

use crate::node::Node;
use crate::proxy::Proxy;
use crate::script::{Job, Log, Step, Trouble, What};
use crate::support::{Database, Rig, Vhost, job, publish, until};

#[consumer(
    queue = "alone",
    retry(max = 2, delay = "100ms"),
    dlq = "dlq.alone",
    prefetch = 20,
    idempotent(store = "redis", lease = "3s")
)]
async fn alone(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(queue = "blocking", dlq = "dlq.blocking", concurrency = 1, idempotent(store = "redis", lease = "3s"))]
async fn blocking(job: Job, log: State<Log>, cx: Context) {
    log.ran(&job.name, &cx);
    if job.name == "blocks" {
        std::thread::sleep(Duration::from_secs(9));
    }
}

async fn rig(vhost: &Vhost, database: &Database) -> Rig {
    let store = database.url();
    let url = format!("{}?heartbeat=2", vhost.url());
    Rig::at(&url, |guard| guard.store_url(&store).consumer::<alone>()).await
}

fn told(log: &Log, what: &str) -> usize {
    log.seen().iter().filter(|seen| matches!(&seen.what, What::Other(text) if text.starts_with(what))).count()
}

/// The system takes what is sent to it, and it answers nothing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_frozen_broker_is_unhealthy_within_two_heartbeats_and_recovers() {
    let (node, database) = (Node::start(), Database::new());
    let rig = rig(&node.vhost(), &database).await;
    for name in ["before", "runs"] {
        rig.publish("alone", name, &[if name == "runs" { Step::Take(2_000) } else { Step::Succeed }]).await;
    }
    rig.until(|log| log.count() == 2).await;
    node.signal("STOP");
    let unhealthy = rig.until_health(|status| matches!(status, Status::Reconnecting { .. })).await;
    assert!(unhealthy < Duration::from_secs(8), "{unhealthy:?}");
    // The handler does not need the broker.
    rig.ended(&["runs"]).await;
    let began = Instant::now();
    node.signal("CONT");
    rig.until_health(Status::is_healthy).await;
    rig.publish("alone", "after", &[Step::Succeed]).await;
    rig.ended(&["after"]).await;
    eprintln!("a frozen broker: unhealthy after {unhealthy:?}, processing {:?} after it went on", began.elapsed());
    assert_eq!(rig.log.runs_of("runs").len(), 1);
    rig.shutdown().await;
    node.vhost().until_no_backlog(&[]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_broker_that_is_killed_and_comes_back_is_consumed_without_a_restart_of_the_process() {
    let (mut node, database) = (Node::start(), Database::new());
    let vhost = node.vhost();
    let rig = rig(&vhost, &database).await;
    rig.publish("alone", "dies", &[Step::FailForGood]).await;
    rig.ended(&["dies"]).await;
    vhost.eval("[ok = dets:sync(Table) || Table <- dets:all()].");
    node.kill();
    rig.until_health(|status| matches!(status, Status::Reconnecting { .. })).await;
    node.run();
    let back = Instant::now();
    for n in 0..10 {
        publish(&vhost.broker(), "alone", &job(&format!("after-{n}"), &[Step::Succeed])).await;
    }
    rig.until(|log| log.processed() == 10).await;
    let took = back.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    rig.until_health(Status::is_healthy).await;
    rig.shutdown().await;
    // It was persistent.
    let letter = vhost.letters("dlq.alone", 1).await.remove(0);
    assert_eq!((letter.message_id(), letter.message().properties.delivery_mode), (Some("dies"), Some(2)));
}

/// Acks go through on the connection that consumes; what has to be published waits, with its delivery.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_memory_alarm_holds_up_retries_and_nothing_else() {
    let (node, database) = (Node::start(), Database::new());
    let vhost = node.vhost();
    let rig = rig(&vhost, &database).await;
    // All in before the alarm, and begun after it.
    let names: Vec<String> = (0..50).map(|n| format!("{}-{n}", if n % 5 == 0 { "fails" } else { "fine" })).collect();
    for name in &names {
        let steps: &[Step] = if name.starts_with("fails") { &[Step::After(300), Step::Succeed] } else { &[Step::Take(1_500)] };
        rig.publish("alone", name, steps).await;
    }
    vhost.ctl(&["set_vm_memory_high_watermark", "0.0000001"]);
    rig.until(|log| names.iter().filter(|name| name.starts_with("fine")).all(|name| log.ended(name))).await;
    // The alarm caught some of them at least; how many channels there are does not grow with the tries.
    let waiting = |log: &Log| names.iter().filter(|name| name.starts_with("fails") && !log.ended(name)).count();
    let held = waiting(&rig.log);
    assert!(held > 0, "the alarm came too late");
    let channels = || vhost.ctl(&["list_channels", "--quiet", "--no-table-headers", "pid"]).lines().count();
    let before = channels();
    until("the acks have arrived", || vhost.backlog(&[]).values().sum::<u64>() <= 10);
    assert!(channels() <= before, "{before} channels, then {}", channels());
    vhost.ctl(&["set_vm_memory_high_watermark", "0.6"]);
    rig.until(|log| names.iter().all(|name| log.ended(name))).await;
    for name in &names {
        let runs = if name.starts_with("fails") { 2 } else { 1 };
        assert_eq!(rig.log.runs_of(name).len(), runs, "{name}");
    }
    eprintln!("a memory alarm held up {held} retries");
    rig.shutdown().await;
    vhost.until_no_backlog(&[]);
}

/// The broker closes the channel (from 4.3 on it cancels the consumer) over a delivery that is not settled in its time; the connection
/// looks well.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn an_acknowledgement_timeout_ends_in_a_new_subscription_and_one_run() {
    let (node, database) = (Node::start(), Database::new());
    let vhost = node.vhost();
    vhost.eval("application:set_env(rabbit, consumer_timeout, 1500), application:set_env(rabbit, channel_tick_interval, 500).");
    let rig = rig(&vhost, &database).await;
    rig.publish("alone", "long", &[Step::Take(5_000)]).await;
    rig.until(|log| log.count() == 1).await;
    rig.until_health(|status| matches!(status, Status::Reconnecting { reason } if reason.contains("alone"))).await;
    let healthy = rig.until_health(Status::is_healthy).await;
    assert!(healthy < Duration::from_secs(10), "{healthy:?}");
    rig.publish("alone", "other", &[Step::Succeed]).await;
    rig.ended(&["other", "long"]).await;
    rig.until(|log| told(log, "Duplicate") >= 1).await;
    assert_eq!(rig.log.runs_of("long").len(), 1);
    rig.shutdown().await;
    vhost.until_no_backlog(&[]);
}

/// A handler that blocks the only thread of the runtime: the heartbeats go on without it.
#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn a_handler_that_blocks_the_runtime_costs_no_connection() {
    for threads in [1, 4] {
        let (vhost, database) = (Vhost::new(), Database::new());
        let (proxy, store) = (Proxy::to(&vhost), database.url());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().expect("a runtime");
        // Not `block_on` of a future that drives the guard: that thread would be one more. All of it is spawned.
        let test = async move {
            let rig = Rig::at(&proxy.url(&vhost, "heartbeat=2"), |guard| guard.store_url(&store).consumer::<blocking>()).await;
            rig.publish("blocking", "blocks", &[]).await;
            rig.publish("blocking", "after", &[]).await;
            rig.ended(&["blocks", "after"]).await;
            assert_eq!((rig.log.runs_of("blocks").len(), rig.log.runs_of("after").len()), (1, 1));
            assert_eq!(rig.log.processed(), 2, "{:?}", rig.log.seen());
            assert_eq!((proxy.accepted(), proxy.open()), (2, 2), "a connection was lost");
            rig.shutdown().await;
        };
        runtime.block_on(async move { tokio::spawn(test).await.expect("the test succeeds") });
    }
}
