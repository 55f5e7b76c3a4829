//! The broker goes away, in good order or by SIGKILL, and comes back.

use std::time::{Duration, Instant};

use mqguard::{Context, State, consumer};

use crate::node::Node;
use crate::process::{Orders, PATIENCE};
use crate::processes::{DLQ, QUEUE};
use crate::script::{Job, Log, Step, Trouble, What};
use crate::support::{Database, Rig, count_records, until};

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    InGoodOrder,
    Crash,
}

/// Long enough for the broker to be back before it is over, as a rule.
const WAIT: Duration = Duration::from_secs(15);

#[consumer(queue = "waits.quorum", retry(max = 1, delay = "15s"), dlq = "dlq.waits.quorum", idempotent = "redis")]
async fn on_quorum(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(
    queue = "waits.classic",
    retry(max = 1, delay = "15s"),
    dlq = "dlq.waits.classic",
    idempotent = "redis",
    queue_type = "classic"
)]
async fn on_classic(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// Waiting messages of both types of queues: their names, once they wait.
async fn waiting(rig: &Rig) -> Vec<String> {
    let names: Vec<String> = (0..20).map(|n| format!("m-{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        let queue = if n % 2 == 0 { "waits.quorum" } else { "waits.classic" };
        rig.publish(queue, name, &[Step::Fail, Step::Succeed]).await;
    }
    let retries = |log: &Log| log.seen().iter().filter(|seen| matches!(seen.what, What::Retried { .. })).count();
    rig.until(|log| retries(log) == names.len()).await;
    names
}

/// The broker goes away in the middle of `orders`, and while messages wait.
async fn the_broker_comes_back(how: How) {
    let mut node = Node::start();
    let (vhost, database) = (node.vhost(), Database::new());
    let (broker, store) = (vhost.url(), database.url());
    let mut client = database.client();
    let rig = Rig::start(&vhost, |guard| guard.store_url(&store).consumer::<on_quorum>().consumer::<on_classic>()).await;
    let on = ["--broker", &broker, "--store", &store, "--json"];
    // Declares the queues, and has nothing to do.
    Orders::run(&[&on[..], &["--consume-only", "--expect", "0"]].concat()).summary();
    let expression = if how == How::InGoodOrder { "rabbit:stop()" } else { "[ok = dets:sync(Table) || Table <- dets:all()]" };
    let trap = vhost.trap(QUEUE, 1_500, expression);

    let names = waiting(&rig).await;
    let orders = Orders::start(&on);
    trap.sprung();
    if how == How::InGoodOrder {
        vhost.ctl(&["start_app"]);
    } else {
        node.kill();
        node.run();
    }
    let (back, back_in_log) = (Instant::now(), rig.log.now());
    let before = count_records(&mut client);
    assert!(before < 5_000, "it was to go away in the middle");
    until("orders are processed again", || count_records(&mut client) > before);
    let recovered = back.elapsed();
    let summary = orders.ended(PATIENCE).summary();
    summary.assert_adds_up();
    eprintln!(
        "{how:?} after {before} orders: processing {recovered:?} after the broker was back, {} duplicates, {} ms",
        summary.duplicates, summary.elapsed_ms
    );

    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    rig.ended(&ids).await;
    let mut late: Vec<Duration> = Vec::new();
    for name in &names {
        let [first, second] = rig.log.times(name).try_into().unwrap();
        let gap: Duration = second - first;
        assert!(gap >= WAIT, "{name} ran again after {gap:?}");
        // On a slow machine the broker is back later than they are due.
        late.push(second.saturating_sub(back_in_log.max(first + WAIT)));
    }
    late.sort();
    let (median, most) = (late[late.len() / 2], late[late.len() - 1]);
    eprintln!("{how:?}: waiting messages {median:?} late in the median, {most:?} at most");
    assert!(most < Duration::from_secs(5), "{late:?}");
    rig.shutdown().await;
    vhost.until_only_duplicates_were_left(&store, &[DLQ]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn the_broker_is_restarted() {
    the_broker_comes_back(How::InGoodOrder).await;
}

/// Before it is killed the node writes down which queues there are, as it does by itself some seconds after one was declared: RabbitMQ 3.10
/// forgets what is in a quorum queue when its node crashes before that.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn the_broker_is_killed() {
    the_broker_comes_back(How::Crash).await;
}
