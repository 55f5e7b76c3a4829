//! Retries run after their delay, never before, and not much later.

use std::time::Duration;

use mqguard::{Context, State, consumer};

use crate::script::{Job, Log, Step, Trouble};
use crate::support::{Rig, Vhost};

#[consumer(queue = "late.quorum", retry(max = 3, delay = "200ms", factor = 2), dlq = "dlq.late.quorum")]
async fn on_quorum(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(queue = "late.classic", retry(max = 3, delay = "200ms", factor = 2), dlq = "dlq.late.classic", queue_type = "classic")]
async fn on_classic(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

const DELAYS: [Duration; 3] = [Duration::from_millis(200), Duration::from_millis(400), Duration::from_millis(800)];

async fn rig(vhost: &Vhost) -> Rig {
    Rig::start(vhost, |guard| guard.consumer::<on_quorum>().consumer::<on_classic>()).await
}

/// How late each retry of a job was.
#[track_caller]
fn lateness(log: &Log, name: &str) -> Vec<Duration> {
    let times = log.times(name);
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]).zip(DELAYS);
    gaps.map(|(gap, delay)| gap.checked_sub(delay).unwrap_or_else(|| panic!("{name} came after {gap:?} instead of {delay:?}")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn retries_are_never_early() {
    const COUNT: usize = 40;
    let vhost = Vhost::new();
    let rig = rig(&vhost).await;
    for queue in ["late.quorum", "late.classic"] {
        let names: Vec<String> = (0..COUNT).map(|n| format!("{queue}-{n}")).collect();
        // One after the other, so that none waits for a handler.
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        for name in &names {
            pace.tick().await;
            rig.publish(queue, name, &[Step::Fail, Step::Fail, Step::Fail, Step::Succeed]).await;
        }
        rig.ended(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let mut late: Vec<Duration> = names.iter().flat_map(|name| lateness(&rig.log, name)).collect();
        assert_eq!(late.len(), COUNT * DELAYS.len());
        late.sort();
        let at = |share: usize| late[(late.len() - 1) * share / 100];
        eprintln!("{queue}: late by {:?} in the median, {:?} at 95 %, {:?} at most", at(50), at(95), at(100));
        // A machine that is busy with other things is slow; a mistake in the delays would be more than this.
        assert!(at(50) < Duration::from_millis(100), "{queue}: {:?}", at(50));
    }
    rig.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_long_wait_does_not_hold_up_a_short_one() {
    let vhost = Vhost::new();
    let rig = rig(&vhost).await;
    for queue in ["late.quorum", "late.classic"] {
        let (long, short) = (format!("{queue}-long"), format!("{queue}-short"));
        rig.publish(queue, &long, &[Step::Fail, Step::Fail, Step::Fail, Step::Succeed]).await;
        // Now it waits for 800 ms.
        rig.until(|log| log.times(&long).len() == 3).await;
        rig.publish(queue, &short, &[Step::Fail, Step::Succeed]).await;
        rig.ended(&[&long, &short]).await;
        assert!(rig.log.end_of(&short) < rig.log.end_of(&long), "{queue}");
        for late in [lateness(&rig.log, &short), lateness(&rig.log, &long)].concat() {
            assert!(late < Duration::from_millis(500), "{queue}: {late:?}");
        }
    }
    rig.shutdown().await;
}
