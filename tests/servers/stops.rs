//! Shutdowns under load, again and again: nothing is lost, nothing that was done comes again, nothing counts as a failure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mqguard::{Context, HeaderValue, State, consumer};

use crate::proxy::{Proxy, Way};
use crate::script::{Job, Log, Run, Step, Trouble, What};
use crate::support::{Rig, Vhost, job, publish};

#[consumer(queue = "busy.hours", dlq = "dlq.busy.hours", concurrency = 4, prefetch = 20)]
async fn busy_hours(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(queue = "stops", dlq = "dlq.stops", prefetch = 20)]
async fn stops(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(queue = "stops.classic", dlq = "dlq.stops.classic", prefetch = 20, queue_type = "classic")]
async fn stops_classic(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// What was prefetched goes back, and is no attempt.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_shutdown_ends_the_intake_at_once() {
    let vhost = Vhost::new();
    let rig = Rig::start(&vhost, |guard| guard.consumer::<busy_hours>()).await;
    let names: Vec<String> = (0..300).map(|n| format!("m-{n}")).collect();
    for name in &names {
        rig.publish("busy.hours", name, &[Step::Take(200)]).await;
    }
    rig.until(|log| log.processed() >= 20).await;
    let (log, begun, began) = (rig.log.clone(), rig.log.count(), Instant::now());
    rig.shutdown().await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    // One may have begun in between.
    let after = log.count();
    assert!(after <= begun + 4 && log.processed() == after, "{begun} begun, then {after}, {} done", log.processed());
    assert_eq!(log.letters(), 0);

    let next = Rig::start(&vhost, |guard| guard.consumer::<busy_hours>()).await;
    next.until(|log| log.processed() == names.len() - after).await;
    assert!(next.log.runs().iter().all(|run| (run.attempt.retries, run.attempt.deferrals) == (0, 0)));
    for name in &names {
        assert_eq!(log.runs_of(name).len() + next.log.runs_of(name).len(), 1, "{name}");
    }
    next.shutdown().await;
    vhost.until_no_backlog(&[]);
}

/// Without a store to tell duplicates: each message runs once, whatever crosses a cancellation, and no ack is lost at a close.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn fifty_stops_under_load_run_every_message_exactly_once() {
    let vhost = Vhost::new();
    let build = |guard: mqguard::Guard| guard.consumer::<stops>().consumer::<stops_classic>();
    Rig::start(&vhost, build).await.shutdown().await;
    let stopped = Arc::new(AtomicBool::new(false));
    let (publisher, until) = (vhost.broker(), Arc::clone(&stopped));
    let publishing = tokio::spawn(async move {
        let mut count = 0_u64;
        while !until.load(Ordering::Relaxed) {
            for queue in ["stops", "stops.classic"] {
                publish(&publisher, queue, &job(&format!("{queue}-{count}"), &[Step::Succeed])).await;
            }
            count += 1;
        }
        count
    });
    let mut logs = Vec::new();
    for round in 0..50 {
        let rig = Rig::start(&vhost, build).await;
        rig.until(|log| log.processed() > 3 * (round % 7)).await;
        logs.push(rig.log.clone());
        rig.shutdown().await;
    }
    stopped.store(true, Ordering::Relaxed);
    let published = publishing.await.unwrap();
    let rig = Rig::start(&vhost, build).await;
    let total = |logs: &[Log], log: &Log| logs.iter().chain([log]).map(Log::processed).sum::<usize>();
    rig.until(|log| total(&logs, log) as u64 >= 2 * published).await;
    logs.push(rig.log.clone());
    rig.shutdown().await;
    let mut runs = BTreeMap::new();
    for run in logs.iter().flat_map(Log::runs) {
        *runs.entry(run.name).or_insert(0) += 1;
    }
    // What is handed back is no death, but a delivery that comes again may have been one, and a second time when a quorum queue takes it
    // back as it is on its way. From then on the message runs alone, and counts only what it runs.
    let deaths = |run: &Run| run.message.headers.get("mqguard-crashes").and_then(HeaderValue::as_i64).unwrap_or_default();
    let counted = logs.iter().flat_map(Log::runs).map(|run| deaths(&run)).fold(BTreeMap::new(), |mut counted, deaths| {
        *counted.entry(deaths).or_insert(0) += 1;
        counted
    });
    assert!(counted.keys().all(|deaths| *deaths <= 2), "{counted:?}");
    assert!(logs.iter().all(|log| log.letters() == 0));
    let twice: Vec<_> = runs.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "{twice:?} of {published}");
    assert_eq!(runs.len() as u64, 2 * published);
    eprintln!("50 stops under load: {published} messages to each of two queues, each ran once");
    vhost.until_no_backlog(&[]);
}

/// RabbitMQ before 4.3 counts what is handed back towards the limit of a quorum queue: after that it is a letter, and never gone.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_message_that_twenty_five_shutdowns_interrupt_is_still_there() {
    let vhost = Vhost::new();
    let build = |guard: mqguard::Guard| guard.grace(Duration::from_millis(20)).consumer::<stops>();
    let mut runs = 0;
    for round in 0..25 {
        let rig = Rig::start(&vhost, build).await;
        if round == 0 {
            rig.publish("stops", "interrupted", &[Step::Take(600_000)]).await;
        }
        let begun = tokio::time::timeout(Duration::from_secs(2), rig.log.until(|log| log.count() == 1)).await;
        runs += usize::from(begun.is_ok());
        let log = rig.log.clone();
        rig.shutdown().await;
        assert_eq!(log.letters(), 0);
        if begun.is_err() {
            break;
        }
        // The first one might have been a death: the delivery after it is replaced by a copy that says so. Those that follow are copies.
        let returns = if round == 1 { 2 } else { 1 };
        assert_eq!(log.seen_of("interrupted"), vec![What::Other("Returned".into()); returns]);
    }
    let left = vhost.backlog(&[]);
    assert_eq!(left.values().sum::<u64>(), 1, "{left:?} after {runs} runs");
    if left.contains_key("dlq.stops") {
        assert!(runs >= 21, "{runs} runs");
        let letter = vhost.letters("dlq.stops", 1).await.remove(0);
        assert_eq!((letter.message_id(), letter.reason().to_string().as_str()), (Some("interrupted"), "broker:delivery_limit"));
    } else {
        assert_eq!(runs, 25);
    }
}

/// A shutdown waits for no connection that cannot be had.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_shutdown_while_the_broker_is_away_ends() {
    let vhost = Vhost::new();
    let proxy = Proxy::to(&vhost);
    let rig = Rig::at(&proxy.url(&vhost, ""), |guard| guard.grace(Duration::from_secs(3)).consumer::<stops>()).await;
    rig.publish("stops", "long", &[Step::Take(1_000)]).await;
    rig.until(|log| log.count() == 1).await;
    assert!(proxy.passed(Way::Back) > 0);
    proxy.refuse(true);
    proxy.cut();
    rig.until_health(|status| !status.is_healthy()).await;
    let (log, began) = (rig.log.clone(), Instant::now());
    rig.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(log.processed(), 1, "the handler was not waited for");
    // Its ack was lost with the connection: without a store it runs again.
    proxy.refuse(false);
    let next = Rig::start(&vhost, |guard| guard.consumer::<stops>()).await;
    next.ended(&["long"]).await;
    next.shutdown().await;
    vhost.until_no_backlog(&[]);
}
