//! Hold queues: those of a policy, and those for any other delay, which are declared when they are needed.

use std::collections::BTreeMap;
use std::time::Duration;

use mqguard::{Context, State, consumer};

use crate::script::{Job, Log, Step, Trouble, What, millis};
use crate::support::{Database, Rig, Vhost};

#[consumer(queue = "hold", retry(max = 3, delay = "70ms", within = "1h"), dlq = "dlq.hold", prefetch = 100)]
async fn on_quorum(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(
    queue = "hold.classic",
    retry(max = 3, delay = "70ms", within = "1h"),
    dlq = "dlq.hold.classic",
    queue_type = "classic"
)]
async fn on_classic(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// The hold queues of a queue with their arguments. The hour in a name becomes `H`.
fn hold_queues(vhost: &Vhost, queue: &str) -> BTreeMap<String, String> {
    let prefix = format!("{queue}.retry.");
    let queues = vhost.queues("arguments").into_iter().filter_map(|(name, arguments)| {
        let delay = name.strip_prefix(&prefix)?;
        let (delay, hour) = delay.split_once(".h").map_or((delay, ""), |(delay, _)| (delay, ".H"));
        Some((format!("{delay}{hour}"), arguments))
    });
    queues.collect()
}

#[track_caller]
fn assert_gap(log: &Log, name: &str, delays: &[u64]) {
    let times = log.times(name);
    assert_eq!(times.len(), delays.len() + 1, "{name}: {times:?}");
    for (pair, &delay) in times.windows(2).zip(delays) {
        let gap = pair[1] - pair[0];
        assert!(gap >= millis(delay), "{name} came after {gap:?} instead of {delay} ms");
        assert!(gap < millis(delay) + Duration::from_secs(1), "{name} came after {gap:?} instead of {delay} ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_delay_that_an_error_asks_for_has_a_queue_of_its_own() {
    let vhost = Vhost::new();
    let rig = Rig::start(&vhost, |guard| guard.consumer::<on_quorum>().consumer::<on_classic>()).await;
    for queue in ["hold", "hold.classic"] {
        let name = |name: &str| format!("{queue}-{name}");
        assert_eq!(hold_queues(&vhost, queue).into_keys().collect::<Vec<_>>(), ["70ms"]);
        rig.publish(queue, &name("after"), &[Step::After(1_300), Step::Fail, Step::Succeed]).await;
        rig.publish(queue, &name("later"), &[Step::Later(1_234), Step::Later(7), Step::Succeed]).await;
        rig.ended(&[&name("after"), &name("later")]).await;
        assert_gap(&rig.log, &name("after"), &[1_300, 70]);
        // Rounded up to two digits, and at least 100 ms when it is not counted.
        assert_gap(&rig.log, &name("later"), &[1_300, 100]);
        let [_, second, third] = rig.log.runs_of(&name("later")).try_into().unwrap();
        assert_eq!((second.attempt.retries, second.attempt.deferrals, third.attempt.deferrals), (0, 1, 2));

        let queues = hold_queues(&vhost, queue);
        assert_eq!(queues.keys().collect::<Vec<_>>(), ["100ms.H", "1300ms.H", "70ms"]);
        let kind = if queue == "hold" { "quorum" } else { "classic" };
        for (delay, ttl, expires) in [("70ms", 70, None), ("100ms.H", 100, Some(7_200_100)), ("1300ms.H", 1_300, Some(7_201_300))]
        {
            let arguments = &queues[delay];
            let mut expected = vec![
                format!("{{\"x-queue-type\",\"{kind}\"}}"),
                format!("{{\"x-message-ttl\",{ttl}}}"),
                "{\"x-dead-letter-exchange\",[]}".to_owned(),
                format!("{{\"x-dead-letter-routing-key\",\"{queue}\"}}"),
            ];
            expected.extend(expires.map(|expires| format!("{{\"x-expires\",{expires}}}")));
            if kind == "quorum" {
                expected.push("{\"x-dead-letter-strategy\",\"at-least-once\"}".into());
                expected.push("{\"x-overflow\",\"reject-publish\"}".into());
            }
            for argument in &expected {
                assert!(
                    arguments.contains(argument) || arguments.contains(&argument.replace("[]", "\"\"")),
                    "{argument} in {arguments}"
                );
            }
            assert_eq!(arguments.matches("x-").count(), expected.len(), "{arguments}");
        }
    }
    rig.shutdown().await;
}

#[consumer(queue = "jitter", retry(max = 2, delay = "200ms", jitter = 0.5), dlq = "dlq.jitter", prefetch = 500)]
async fn jittered(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn jitter_spreads_over_few_queues() {
    let vhost = Vhost::new();
    let rig = Rig::start(&vhost, |guard| guard.consumer::<jittered>()).await;
    let names: Vec<String> = (0..200).map(|n| format!("j-{n}")).collect();
    for name in &names {
        rig.publish("jitter", name, &[Step::Fail, Step::Fail, Step::Succeed]).await;
    }
    rig.ended(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let gaps: Vec<Duration> =
        names.iter().flat_map(|name| rig.log.times(name).windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()).collect();
    assert_eq!(gaps.len(), 400);
    assert!(gaps.iter().all(|gap| *gap >= millis(200)), "{:?}", gaps.iter().min());
    let queues = hold_queues(&vhost, "jitter");
    // 200 ms to 300 ms in steps of 10 ms. A run may span two hours, whose queues are told apart by their names, which are shortened here.
    assert!((5..=11).contains(&queues.len()), "{:?}", queues.keys());
    rig.shutdown().await;
}

#[consumer(queue = "busy", retry(max = 1, delay = "70ms"), dlq = "dlq.busy", idempotent = "redis")]
async fn busy(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// Two processes get the same message at once: one runs it, the other looks again until it is done.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_message_that_another_process_has_comes_again() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let store = database.url();
    let rigs = [
        Rig::start(&vhost, |guard| guard.store_url(&store).consumer::<busy>()).await,
        Rig::start(&vhost, |guard| guard.store_url(&store).consumer::<busy>()).await,
    ];
    for _ in 0..4 {
        rigs[0].publish("busy", "same", &[Step::Take(1_000)]).await;
    }
    let told = |what: &str| {
        let logs = rigs.iter().map(|rig| {
            rig.log.seen_of("same").iter().filter(|seen| matches!(seen, What::Other(text) if text.starts_with(what))).count()
        });
        logs.sum::<usize>()
    };
    let all = async {
        while told("Duplicate") < 3 {
            tokio::time::sleep(millis(10)).await;
        }
    };
    crate::support::within(all).await;
    let runs: usize = rigs.iter().map(|rig| rig.log.count()).sum();
    assert_eq!((runs, told("Duplicate")), (1, 3));
    assert!(told("Busy") >= 3, "{} times", told("Busy"));
    let queues = hold_queues(&vhost, "busy");
    assert!(queues.contains_key("200ms.H") && queues["200ms.H"].contains("{\"x-message-ttl\",200}"), "{queues:?}");
    for rig in rigs {
        rig.shutdown().await;
    }
    vhost.until_no_backlog(&[]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn queues_that_somebody_deleted_are_declared_again() {
    let vhost = Vhost::new();
    let rig = Rig::start(&vhost, |guard| guard.consumer::<on_quorum>().consumer::<on_classic>()).await;
    let admin = vhost.broker();
    for queue in ["hold", "hold.classic"] {
        let name = |name: &str| format!("{queue}-{name}");
        rig.publish(queue, &name("before"), &[Step::After(500), Step::Fail, Step::FailForGood]).await;
        rig.ended(&[&name("before")]).await;
        let names: Vec<String> = vhost.queues("messages").into_keys().collect();
        let deleted: Vec<&String> = names
            .iter()
            .filter(|name| name.starts_with(&format!("{queue}.retry.")) || **name == format!("dlq.{queue}"))
            .collect();
        assert_eq!(deleted.len(), 3, "{names:?}");
        for queue in deleted {
            admin.delete_queue(queue).await.unwrap();
        }
        rig.publish(queue, &name("after"), &[Step::After(500), Step::Fail, Step::FailForGood]).await;
        rig.ended(&[&name("after")]).await;
        assert_gap(&rig.log, &name("after"), &[500, 70]);
        assert_eq!(hold_queues(&vhost, queue).into_keys().collect::<Vec<_>>(), ["500ms.H", "70ms"]);
        assert_eq!(vhost.letters(&format!("dlq.{queue}"), 1).await[0].message_id(), Some(name("after").as_str()));
    }
    rig.shutdown().await;
}
