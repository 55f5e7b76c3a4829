//! A guard that is told to stop while handlers run.

use std::time::{Duration, Instant};

use mqguard::{Context, State, consumer};

use crate::script::{Job, Log, Step, Trouble, What};
use crate::support::{Database, Rig, Vhost};

#[consumer(queue = "slow", dlq = "dlq.slow", idempotent(store = "redis", lease = "30s"), prefetch = 10)]
async fn slow(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

async fn rig(vhost: &Vhost, store: &str, grace: Duration) -> Rig {
    Rig::start(vhost, |guard| guard.store_url(store).grace(grace).consumer::<slow>()).await
}

/// The handlers that run are waited for; what waits behind them goes to the next process, untouched.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn handlers_that_run_are_finished() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let store = database.url();
    let first = rig(&vhost, &store, Duration::from_secs(25)).await;
    let names: Vec<String> = (0..40).map(|n| format!("m-{n}")).collect();
    for name in &names {
        first.publish("slow", name, &[Step::Take(1_000)]).await;
    }
    first.until(|log| log.count() >= 10).await;
    let log = first.log.clone();
    let begun = Instant::now();
    first.shutdown().await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    let done = log.count();
    assert!((10..40).contains(&done), "{done}");
    assert_eq!(log.processed(), done, "a run that had begun was not finished");

    let second = rig(&vhost, &store, Duration::from_secs(25)).await;
    second.until(|log| log.processed() == 40 - done).await;
    for name in &names {
        let runs = log.runs_of(name).len() + second.log.runs_of(name).len();
        assert_eq!(runs, 1, "{name}");
    }
    assert!(second.log.seen().iter().all(|seen| seen.what == What::Processed), "{:?}", second.log.seen());
    second.shutdown().await;
    vhost.until_no_backlog(&[]);
}

/// A handler that does not end in time is cancelled; its message runs elsewhere at once, not after the lease.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_handler_that_takes_too_long_is_run_elsewhere() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let store = database.url();
    for nth in 0..2 {
        let rig = rig(&vhost, &store, Duration::from_millis(300)).await;
        if nth == 0 {
            rig.publish("slow", "long", &[Step::Take(60_000)]).await;
        }
        let begun = Instant::now();
        rig.until(|log| log.count() == 1).await;
        assert!(begun.elapsed() < Duration::from_secs(10), "run {nth} began after {:?}", begun.elapsed());
        let log = rig.log.clone();
        let begun = Instant::now();
        rig.shutdown().await;
        assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
        assert_eq!(log.seen_of("long"), [What::Other("Returned".into())]);
    }
}
