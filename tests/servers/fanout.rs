//! Several queues on one exchange: a retry concerns the queue that failed, and no other.

use mqguard::{Context, Reason, State, consumer};

use crate::script::{Job, Log, Step, Trouble, What};
use crate::support::{Database, Rig, Vhost, within};

#[consumer(
    queue = "fan.process",
    bind(exchange = "fan.events", kind = "fanout"),
    retry(max = 3, delay = "50ms", factor = 2),
    dlq = "dlq.fan.process",
    idempotent = "redis"
)]
async fn process(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// Succeeds whatever the job says.
#[consumer(queue = "fan.audit", bind(exchange = "fan.events", kind = "fanout"), dlq = "dlq.fan.audit", idempotent = "redis")]
async fn audit(job: Job, log: State<Log>, cx: Context) {
    log.ran(&format!("audit of {}", job.name), &cx);
}

/// Fails as well, by itself.
#[consumer(
    queue = "fan.bill",
    bind(exchange = "fan.events", kind = "fanout"),
    retry(max = 1, delay = "50ms"),
    dlq = "dlq.fan.bill",
    idempotent = "redis"
)]
async fn bill(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    log.ran(&format!("bill of {}", job.name), &cx);
    Err(Trouble::Passing(1))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_retry_goes_to_the_queue_that_failed() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let store = database.url();
    let rig =
        Rig::start(&vhost, |guard| guard.store_url(&store).consumer::<process>().consumer::<audit>().consumer::<bill>()).await;
    for (name, steps) in [("dies", vec![Step::Fail]), ("recovers", vec![Step::Fail, Step::Fail, Step::Succeed])] {
        let job = Job { name: name.into(), steps };
        let draft = rig.publisher.json(&job).unwrap().message_id(name);
        within(draft.to_exchange("fan.events", "order.placed")).await.unwrap();
    }
    let ends =
        |log: &Log| log.seen().iter().filter(|seen| matches!(seen.what, What::Processed | What::DeadLettered { .. })).count();
    rig.until(|log| ends(log) == 6).await;
    let count = |name: &str| rig.log.runs_of(name).len();
    assert_eq!((count("dies"), count("recovers")), (4, 3));
    for name in ["dies", "recovers"] {
        assert_eq!((count(&format!("audit of {name}")), count(&format!("bill of {name}"))), (1, 2));
    }
    for run in rig.log.runs_of("dies") {
        let origin = (run.origin.queue, run.origin.exchange.as_str(), run.origin.routing_key.as_str());
        assert_eq!(origin, ("fan.process", "fan.events", "order.placed"));
    }
    let [letter] = vhost.letters("dlq.fan.process", 1).await.try_into().unwrap();
    assert_eq!((letter.reason(), letter.runs(), letter.message_id()), (Reason::Exhausted, 4, Some("dies")));
    assert_eq!((letter.exchange(), letter.routing_key()), (Some("fan.events"), Some("order.placed")));
    assert_eq!(vhost.letters("dlq.fan.bill", 2).await.len(), 2);
    // Nothing else happened, and nothing is left.
    rig.shutdown().await;
    vhost.until_no_backlog(&[]);
}
