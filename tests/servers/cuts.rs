//! What networks do to connections: cut, frozen, refused, slow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mqguard::{Context, Reason, State, Status, consumer};
use tokio::sync::Semaphore;

use crate::proxy::{BOTH_WAYS, Proxy, Way};
use crate::script::{Job, Log, Step, Trouble, What};
use crate::support::{Database, Rig, Vhost, job, publish, records, take_any};

/// Handlers wait here until the test lets them go on.
#[derive(Clone)]
struct Gate(Arc<Semaphore>);

#[consumer(
    queue = "gated",
    dlq = "dlq.gated",
    idempotent(store = "redis", lease = "3s"),
    prefetch = 10,
    retry(max = 2, delay = "50ms")
)]
async fn gated(job: Job, gate: State<Gate>, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    log.ran(&job.name, &cx);
    gate.0.0.acquire().await.expect("it is never closed").forget();
    match job.steps[0] {
        Step::FailForGood => Err(Trouble::Final),
        _ => Ok(()),
    }
}

#[consumer(queue = "plain", dlq = "dlq.plain", retry(max = 2, delay = "50ms"), prefetch = 10)]
async fn plain(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}-{n}")).collect()
}

async fn gated_rig(proxy: &Proxy, vhost: &Vhost, database: &Database, gate: &Gate) -> Rig {
    let (store, gate) = (database.url(), gate.clone());
    Rig::at(&proxy.url(vhost, "heartbeat=2"), |guard| guard.store_url(&store).state(gate).consumer::<gated>()).await
}

/// That every handler is busy does not hide that the connection is lost. Ten handlers run, their acks would carry tags of a channel that is gone: on the new one they would close it (406).
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_connection_cut_under_ten_handlers_costs_no_second_run_and_no_channel() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let (proxy, gate) = (Proxy::to(&vhost), Gate(Arc::new(Semaphore::new(0))));
    let rig = gated_rig(&proxy, &vhost, &database, &gate).await;
    let names = names("m", 10);
    for name in &names {
        rig.publish("gated", name, &[Step::Succeed]).await;
    }
    rig.until(|log| log.count() == 10).await;
    let connections = proxy.accepted();
    proxy.cut();
    rig.until_health(|status| !status.is_healthy()).await;
    rig.until_health(Status::is_healthy).await;
    gate.0.add_permits(10);
    // All come again on the new channel, and are recognised.
    let duplicates = |log: &Log| log.seen().iter().filter(|seen| seen.what == What::Other("Duplicate".into())).count();
    rig.until(|log| log.processed() == 10 && duplicates(log) >= 10).await;
    // What comes after is not disturbed: the channel was not closed over a tag, or the connections would be others.
    let more: Vec<String> = (0..100).map(|n| format!("after-{n}")).collect();
    gate.0.add_permits(100);
    for name in &more {
        rig.publish("gated", name, &[Step::Succeed]).await;
    }
    rig.until(|log| log.processed() == 110).await;
    for name in names.iter().chain(&more) {
        assert_eq!(rig.log.runs_of(name).len(), 1, "{name}");
    }
    assert_eq!((proxy.accepted() - connections, proxy.open()), (2, 2));
    rig.shutdown().await;
    assert_eq!(records(&mut database.client()).values().filter(|record| record["state"] == "success").count(), 110);
    vhost.until_no_backlog(&[]);
}

/// A letter whose confirm never comes: it is published again, and the message is never without one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_letter_whose_confirm_is_lost_is_not_lost() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let (proxy, gate) = (Proxy::to(&vhost), Gate(Arc::new(Semaphore::new(0))));
    let rig = gated_rig(&proxy, &vhost, &database, &gate).await;
    // The publishing connection is there already, so that only the publish is sent when its answer is lost.
    rig.publish("gated", "dies", &[Step::FailForGood]).await;
    rig.until(|log| log.count() == 1).await;
    proxy.drop_bytes(&[Way::Back]);
    gate.0.add_permits(10);
    let admin = vhost.broker();
    let letters = take_any(&admin, "dlq.gated").await;
    assert_eq!(letters.message.properties.message_id.as_deref(), Some("dies"));
    assert_eq!(rig.log.letters(), 0, "it was not confirmed");
    proxy.cut();
    proxy.release();
    rig.ended(&["dies"]).await;
    assert_eq!(rig.log.runs_of("dies").len(), 1, "the handler ran again for a letter that is owed");
    rig.shutdown().await;
    let again = vhost.letters("dlq.gated", 1).await.remove(0);
    assert_eq!((again.message_id(), again.reason()), (Some("dies"), Reason::Fatal));
    vhost.until_no_backlog(&[]);
}

/// Neither side hears of the other's end: only heartbeats tell. One way is as bad as both.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_half_open_connection_is_unhealthy_within_two_heartbeats_and_recovers() {
    for ways in [&BOTH_WAYS[..], &[Way::There], &[Way::Back]] {
        let vhost = Vhost::new();
        let proxy = Proxy::to(&vhost);
        let rig = Rig::at(&proxy.url(&vhost, "heartbeat=2"), |guard| guard.consumer::<plain>()).await;
        rig.publish("plain", "before", &[Step::Succeed]).await;
        rig.ended(&["before"]).await;
        proxy.hold(ways);
        let took = rig.until_health(|status| !status.is_healthy()).await;
        // Two of 2 s without a sign of life, and what it takes to look.
        assert!(took < Duration::from_secs(8), "{ways:?}: {took:?}");
        let health = rig.running.health();
        let (queue, Status::Reconnecting { reason }) = &health.consumers[0] else { panic!("{health:?}") };
        assert_eq!(*queue, "plain");
        assert!(reason.contains("lost") || reason.contains("ended"), "{reason}");
        // Those of before are of no use any more.
        proxy.cut();
        proxy.release();
        let admin = vhost.broker();
        publish(&admin, "plain", &job("after", &[Step::Succeed])).await;
        rig.ended(&["after"]).await;
        rig.until_health(Status::is_healthy).await;
        eprintln!("half-open {ways:?}: unhealthy after {took:?}");
        rig.shutdown().await;
    }
}

/// A shutdown does not wait for a broker that says nothing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_shutdown_ends_while_the_connection_is_half_open() {
    let vhost = Vhost::new();
    let proxy = Proxy::to(&vhost);
    // With a heartbeat that does not help.
    let build = |guard: mqguard::Guard| guard.grace(Duration::from_secs(2)).consumer::<plain>();
    let rig = Rig::at(&proxy.url(&vhost, "heartbeat=60"), build).await;
    rig.publish("plain", "before", &[Step::Succeed]).await;
    rig.ended(&["before"]).await;
    rig.publish("plain", "fails", &[Step::Take(1_000), Step::Fail]).await;
    rig.until(|log| log.count() == 2).await;
    proxy.hold(&BOTH_WAYS);
    let began = Instant::now();
    rig.shutdown().await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(45), "{took:?}");
    eprintln!("a shutdown on a half-open connection took {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_slow_network_changes_nothing_but_the_time() {
    let vhost = Vhost::new();
    let proxy = Proxy::to(&vhost);
    let rig = Rig::at(&proxy.url(&vhost, "heartbeat=2"), |guard| guard.consumer::<plain>()).await;
    let before = proxy.accepted();
    proxy.delay(Duration::from_millis(100));
    let names = names("slow", 20);
    for name in &names {
        rig.publish("plain", name, &[Step::Fail, Step::Succeed]).await;
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    rig.ended(&names).await;
    for name in names {
        assert_eq!(rig.log.runs_of(name).len(), 2, "{name}");
    }
    assert_eq!(proxy.accepted() - before, 1, "connections were lost");
    rig.shutdown().await;
    vhost.until_no_backlog(&[]);
}
