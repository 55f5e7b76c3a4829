//! A message that one process after another hands back, because it is told to stop in the middle.

use std::time::Duration;

use mqguard::{Context, Guard, Reason, State, consumer};

use crate::script::{Job, Log, Step, Trouble};
use crate::support::{Rig, Vhost};

/// More than the 20 after which a quorum queue dead-letters a message.
const STOPS: usize = 25;

#[consumer(queue = "handed.back", dlq = "dlq.handed.back")]
async fn bare(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(queue = "handed.back.claimed", dlq = "dlq.handed.back.claimed", idempotent = "memory")]
async fn claimed(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// Whether this RabbitMQ counts what is handed back untouched towards the delivery limit.
fn counts(vhost: &Vhost) -> bool {
    let version = vhost.ctl(&["version"]);
    let mut numbers = version.trim().split('.').map(|number| number.parse::<u32>().expect("a number"));
    (numbers.next(), numbers.next()) < (Some(4), Some(3))
}

/// Stops guards in the middle of the message's run until it does not run any more; how many they were.
async fn stopped(vhost: &Vhost, queue: &str, build: impl Fn(Guard) -> Guard) -> usize {
    for stops in 0..STOPS {
        let rig = Rig::start(vhost, |guard| build(guard.grace(Duration::from_millis(10)))).await;
        if stops == 0 {
            rig.publish(queue, "long", &[Step::Take(60_000)]).await;
        }
        // A letter does not run.
        let begun = tokio::time::timeout(Duration::from_secs(5), rig.log.until(|log| log.count() == 1)).await;
        let attempts: Vec<_> = rig.log.runs_of("long").iter().map(|run| run.attempt.retries).collect();
        rig.shutdown().await;
        if begun.is_err() {
            return stops;
        }
        assert_eq!(attempts, [0], "being handed back is no failed attempt");
    }
    STOPS
}

/// Without a store a copy takes its place, which the broker has not counted yet.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_message_that_is_handed_back_again_and_again_stays_in_its_queue() {
    let vhost = Vhost::new();
    assert_eq!(stopped(&vhost, "handed.back", |guard| guard.consumer::<bare>()).await, STOPS);
    assert_eq!(vhost.backlog(&[]).into_iter().collect::<Vec<_>>(), [("handed.back".to_owned(), 1)]);
}

/// It never failed, but it is never gone either: it is in the queue, or a letter.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_claimed_message_that_is_handed_back_again_and_again_is_not_lost() {
    let vhost = Vhost::new();
    let stops = stopped(&vhost, "handed.back.claimed", |guard| guard.consumer::<claimed>()).await;
    if counts(&vhost) {
        assert_eq!(stops, 21);
        let letters = vhost.letters("dlq.handed.back.claimed", 1).await;
        assert_eq!((letters[0].message_id(), letters[0].reason()), (Some("long"), Reason::Broker("delivery_limit".into())));
        vhost.until_no_backlog(&[]);
    } else {
        assert_eq!(stops, STOPS);
        assert_eq!(vhost.backlog(&[]).into_iter().collect::<Vec<_>>(), [("handed.back.claimed".to_owned(), 1)]);
    }
}
