//! What happens to queues, exchanges and rights while a consumer runs, or before it starts.

use std::time::{Duration, Instant};

use mqguard::broker::{
    Address, Binding, Broker, BrokerError, DeclareMode, Exchange, ExchangeKind, Queue, QueueType, RabbitMq, Topology,
};
use mqguard::{Context, Guard, Reason, State, Status, consumer};

use crate::proxy::Proxy;
use crate::script::{Job, Log, Step, Trouble, What};
use crate::support::{Database, Rig, Vhost, job, publish, take_any, within};

#[consumer(queue = "work", retry(max = 2, delay = "50ms", within = "1h"), dlq = "dlq.work", prefetch = 4)]
async fn work(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(queue = "classic", dlq = "dlq.classic", prefetch = 4, queue_type = "classic")]
async fn classic(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(queue = "many", retry(max = 2, delay = "20ms"), dlq = "dlq.many", timeout = "100ms", idempotent = "redis")]
async fn many(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

fn is_stuck(status: &Status) -> bool {
    matches!(status, Status::Stuck { .. })
}

fn reason(rig: &Rig) -> String {
    rig.running.health().consumers[0].1.to_string()
}

/// Nothing was delivered a second time: the channel was never lost.
#[track_caller]
fn assert_undisturbed(rig: &Rig) {
    let seen = rig.log.seen();
    assert!(!seen.iter().any(|seen| seen.what == What::Other("Returned".into())), "{seen:?}");
}

async fn declare(broker: &RabbitMq, topology: Topology) {
    within(broker.declare(&topology, DeclareMode::Declare)).await.expect("it is declared");
}

/// While messages are stuck, others are processed; they are neither lost nor run again.
async fn others_go_on(rig: &Rig, queue: &str) {
    rig.publish(queue, "good", &[Step::Succeed]).await;
    rig.ended(&["good"]).await;
    assert!(!rig.running.health().is_healthy(), "{:?}", rig.running.health());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_retry_whose_hold_queue_is_gone_is_kept_until_it_is_back() {
    let vhost = Vhost::new();
    within(Guard::connect(&vhost.url()).unwrap().state(Log::new()).consumer::<work>().declare()).await.unwrap();
    let rig = Rig::start(&vhost, |guard| guard.declare_mode(DeclareMode::Verify).consumer::<work>()).await;
    let admin = vhost.broker();
    admin.delete_queue("work.retry.50ms").await.unwrap();
    rig.publish("work", "fails", &[Step::Fail, Step::Succeed]).await;
    let took = rig.until_health(is_stuck).await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(reason(&rig).contains("work.retry.50ms"), "{}", reason(&rig));
    others_go_on(&rig, "work").await;
    assert_eq!(rig.log.runs_of("fails").len(), 1, "it ran again without its retry");

    let mut hold = Queue::new("work.retry.50ms", QueueType::Quorum);
    hold.message_ttl = Some(Duration::from_millis(50));
    hold.dead_letters = Some(mqguard::broker::DeadLetterTarget { exchange: String::new(), routing_key: "work".into() });
    declare(&admin, Topology { queues: vec![hold], ..Topology::default() }).await;
    rig.ended(&["fails"]).await;
    rig.until_health(Status::is_healthy).await;
    assert_eq!(rig.log.runs_of("fails").len(), 2);
    assert_undisturbed(&rig);
    rig.shutdown().await;
    vhost.until_no_backlog(&[]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn without_its_dead_letter_queue_a_consumer_that_may_not_declare_does_not_start() {
    let vhost = Vhost::new();
    let start = || {
        let guard = Guard::connect(&vhost.url()).unwrap().state(Log::new()).declare_mode(DeclareMode::Verify);
        within(guard.consumer::<work>().start())
    };
    within(Guard::connect(&vhost.url()).unwrap().state(Log::new()).consumer::<work>().declare()).await.unwrap();
    let admin = vhost.broker();
    admin.delete_queue("dlq.work").await.unwrap();
    let error = start().await.unwrap_err().to_string();
    assert!(error.contains("queue `dlq.work` does not exist") && error.contains("declare it"), "{error}");
    declare(&admin, Topology { queues: vec![Queue::new("dlq.work", QueueType::Quorum)], ..Topology::default() }).await;
    vhost.delete_exchange(&admin, "dlx.exchange").await;
    let error = start().await.unwrap_err().to_string();
    assert!(error.contains("exchange `dlx.exchange` does not exist"), "{error}");
}

/// A publish to an exchange that is not there costs its channel, which is not that of the consumer.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_letter_whose_exchange_is_gone_is_kept_and_the_consumer_undisturbed() {
    let vhost = Vhost::new();
    within(Guard::connect(&vhost.url()).unwrap().state(Log::new()).consumer::<work>().declare()).await.unwrap();
    let proxy = Proxy::to(&vhost);
    let rig = Rig::at(&proxy.url(&vhost, ""), |guard| guard.declare_mode(DeclareMode::Verify).consumer::<work>()).await;
    let admin = vhost.broker();
    vhost.delete_exchange(&admin, "dlx.exchange").await;
    rig.publish("work", "dies", &[Step::FailForGood]).await;
    rig.until_health(is_stuck).await;
    assert!(reason(&rig).contains("dlx.exchange"), "{}", reason(&rig));
    for _ in 0..3 {
        others_go_on(&rig, "work").await;
    }
    let exchange = "dlx.exchange".to_owned();
    declare(
        &admin,
        Topology {
            exchanges: vec![Exchange { name: exchange.clone(), kind: ExchangeKind::Direct }],
            bindings: vec![Binding { queue: "dlq.work".into(), exchange, routing_key: "dlq.work".into() }],
            ..Topology::default()
        },
    )
    .await;
    rig.ended(&["dies"]).await;
    assert_eq!((rig.log.runs_of("dies").len(), proxy.accepted(), proxy.open()), (1, 2, 2));
    assert_undisturbed(&rig);
    rig.shutdown().await;
    assert_eq!(vhost.letters("dlq.work", 1).await[0].reason(), Reason::Fatal);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_letter_for_a_full_queue_is_kept_until_there_is_room() {
    let vhost = Vhost::new();
    let rig = Rig::start(&vhost, |guard| guard.consumer::<classic>()).await;
    vhost.policy("full", "^dlq.classic$", r#"{"max-length": 1, "overflow": "reject-publish"}"#);
    for name in ["first", "second", "third"] {
        rig.publish("classic", name, &[Step::FailForGood]).await;
    }
    rig.until_health(is_stuck).await;
    assert!(reason(&rig).contains("full") && reason(&rig).contains("dlq.classic"), "{}", reason(&rig));
    others_go_on(&rig, "classic").await;
    // The first that fits, one that was let in before the queue knew that it is full, and then no more.
    let arrived = rig.log.letters();
    assert!((1..3).contains(&arrived), "{arrived}");
    let admin = vhost.broker();
    let mut letters = Vec::new();
    for _ in 0..3 {
        letters.push(take_any(&admin, "dlq.classic").await.message.properties.message_id.clone().unwrap());
    }
    letters.sort();
    assert_eq!(letters, ["first", "second", "third"]);
    rig.until_health(Status::is_healthy).await;
    assert_eq!(rig.log.count(), 4, "a handler ran again");
    assert_undisturbed(&rig);
    rig.shutdown().await;
    vhost.until_no_backlog(&[]);
}

/// The second start fails; what runs already does not notice.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_declaration_that_does_not_match_disturbs_no_other_consumer() {
    let vhost = Vhost::new();
    let proxy = Proxy::to(&vhost);
    let rig = Rig::at(&proxy.url(&vhost, ""), |guard| guard.consumer::<work>()).await;
    let admin = vhost.broker();
    let queues = ["classic", "classic.quarantine"].map(|name| Queue::new(name, QueueType::Classic)).into();
    declare(&admin, Topology { queues, ..Topology::default() }).await;
    rig.publish("work", "slow", &[Step::Take(1_500)]).await;
    rig.until(|log| log.count() == 1).await;
    let broker = RabbitMq::new(&proxy.url(&vhost, "")).unwrap();
    let drifted = Guard::with_broker(broker.clone()).state(rig.log.clone()).consumer::<classic>().consumer::<work>();
    let error = within(drifted.start()).await.unwrap_err().to_string();
    for part in ["consumer `classic`", "queue `classic` is there with other settings", "x-dead-letter-exchange"] {
        assert!(error.contains(part), "{error}");
    }
    // Where arguments are somebody else's business, it starts.
    let verified = Guard::connect(&vhost.url()).unwrap().state(rig.log.clone()).declare_mode(DeclareMode::Verify);
    let verified = within(verified.consumer::<classic>().start()).await.unwrap();
    rig.publish("classic", "verified", &[Step::Succeed]).await;
    rig.until(|log| log.count() == 2).await;
    within(verified.shutdown()).await.unwrap();
    rig.ended(&["slow"]).await;
    assert_eq!(rig.log.runs_of("slow").len(), 1);
    assert_undisturbed(&rig);
    assert!(rig.running.health().is_healthy());
    rig.shutdown().await;
}

/// A user who may do everything but make the queues that retries of their own delay wait in.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_missing_right_to_declare_hold_queues_is_told_and_loses_nothing() {
    const RIGHTS: &str = "^(work|work[.]retry[.]50ms|work[.]quarantine|dlq[.]work|dlx[.]exchange)$";
    let vhost = Vhost::new();
    let user = vhost.user("clerk", &[RIGHTS, ".*", ".*"]);
    let url = vhost.url_at(&format!("{user}@{}", vhost.address()));
    let build = |guard: Guard| guard.grace(Duration::from_secs(40)).consumer::<work>();
    let rig = Rig::at(&url, build).await;
    let names: Vec<String> = (0..3).map(|n| format!("late-{n}")).collect();
    for name in &names {
        rig.publish("work", name, &[Step::After(1_300), Step::Succeed]).await;
    }
    let took = rig.until_health(is_stuck).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    for part in ["ACCESS_REFUSED", "the user needs the permission to configure", "all queues `work.retry.*`", "set_permissions"] {
        assert!(reason(&rig).contains(part), "{}", reason(&rig));
    }
    others_go_on(&rig, "work").await;
    // A shutdown does not wait out its grace for it: the messages are as safe in their queue.
    let began = Instant::now();
    rig.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());

    let rig = Rig::at(&url, build).await;
    rig.until_health(is_stuck).await;
    vhost.grant("clerk", &[".*", ".*", ".*"]);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    rig.ended(&names).await;
    rig.until_health(Status::is_healthy).await;
    for name in names {
        assert_eq!(rig.log.runs_of(name).len(), 2, "{name}");
    }
    rig.shutdown().await;
    vhost.until_no_backlog(&[]);
}

/// Letters that may not be published are kept as well.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_missing_right_to_publish_letters_is_told_and_loses_nothing() {
    let vhost = Vhost::new();
    let user = vhost.user("mute", &[".*", ".*", ".*"]);
    let rig = Rig::at(&vhost.url_at(&format!("{user}@{}", vhost.address())), |guard| guard.consumer::<work>()).await;
    vhost.grant("mute", &[".*", "^(amq[.]default|work.*|dlq[.]work)$", ".*"]);
    rig.publish("work", "dies", &[Step::FailForGood]).await;
    rig.until_health(is_stuck).await;
    for part in ["ACCESS_REFUSED", "permission to write to the exchange `dlx.exchange`"] {
        assert!(reason(&rig).contains(part), "{}", reason(&rig));
    }
    others_go_on(&rig, "work").await;
    vhost.grant("mute", &[".*", ".*", ".*"]);
    rig.ended(&["dies"]).await;
    assert_eq!(rig.log.runs_of("dies").len(), 1);
    rig.shutdown().await;
    assert_eq!(vhost.letters("dlq.work", 1).await[0].message_id(), Some("dies"));
}

/// What a start fails over tells which right is missing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_start_without_rights_tells_which_is_missing() {
    let vhost = Vhost::new();
    within(Guard::connect(&vhost.url()).unwrap().state(Log::new()).consumer::<work>().declare()).await.unwrap();
    for (user, rights, part) in [
        ("no-configure", ["^$", ".*", ".*"], "the permission to configure the exchange `dlx.exchange`"),
        ("no-read", [".*", ".*", "^$"], "to read from the exchange `dlx.exchange`"),
        ("no-write", [".*", "^$", ".*"], "to write to the queue `dlq.work`"),
    ] {
        let log_in = vhost.user(user, &rights);
        let url = vhost.url_at(&format!("{log_in}@{}", vhost.address()));
        let began = Instant::now();
        let error = within(Guard::connect(&url).unwrap().state(Log::new()).consumer::<work>().start()).await.unwrap_err();
        let error = format!("{error} {error:?}");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        for part in ["consumer `work`", "refused access", part, user] {
            assert!(error.contains(part), "no `{part}` in {error}");
        }
        assert!(!error.contains("s3cret"), "{error}");
    }
}

/// The broker cancels the consumer; the handler that runs ends well, and the queue is consumed again.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_queue_deleted_under_its_consumer_is_declared_and_consumed_again() {
    let vhost = Vhost::new();
    let rig = Rig::start(&vhost, |guard| guard.consumer::<work>().consumer::<classic>()).await;
    let admin = vhost.broker();
    for queue in ["work", "classic"] {
        let name = |name: &str| format!("{queue}-{name}");
        rig.publish(queue, &name("runs"), &[Step::Take(1_000)]).await;
        rig.until(|log| log.runs_of(&name("runs")).len() == 1).await;
        admin.delete_queue(queue).await.unwrap();
        within(async {
            while admin.publish(&Address::queue(queue), &job(&name("after"), &[Step::Succeed])).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        rig.ended(&[&name("after"), &name("runs")]).await;
        rig.until_health(Status::is_healthy).await;
        assert_eq!(rig.log.runs_of(&name("runs")).len(), 1);
    }
    rig.shutdown().await;
}

/// Where it may not be declared, that is final, and says so: the process can end.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_queue_that_is_gone_and_may_not_be_declared_ends_the_guard() {
    let vhost = Vhost::new();
    within(Guard::connect(&vhost.url()).unwrap().state(Log::new()).consumer::<work>().declare()).await.unwrap();
    let rig = Rig::start(&vhost, |guard| guard.declare_mode(DeclareMode::Verify).consumer::<work>()).await;
    vhost.broker().delete_queue("work").await.unwrap();
    let began = Instant::now();
    let error = within(rig.running.failed()).await.unwrap_err().to_string();
    assert!(error.contains("queue `work` does not exist"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(!rig.running.health().is_healthy());
    assert!(within(rig.running.shutdown()).await.is_err());
}

/// A queue that came back as another is no reason to try for ever.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_queue_that_comes_back_as_another_ends_the_guard() {
    let vhost = Vhost::new();
    let proxy = Proxy::to(&vhost);
    let rig = Rig::at(&proxy.url(&vhost, ""), |guard| guard.consumer::<work>()).await;
    proxy.refuse(true);
    proxy.cut();
    let admin = vhost.broker();
    admin.delete_queue("work").await.unwrap();
    declare(&admin, Topology { queues: vec![Queue::new("work", QueueType::Classic)], ..Topology::default() }).await;
    proxy.refuse(false);
    let error = within(rig.running.failed()).await.unwrap_err().to_string();
    assert!(error.contains("queue `work` is there with other settings"), "{error}");
}

/// Every way to end a delivery, many times over: none is settled twice, or the broker would close the channel.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn two_thousand_ends_of_every_kind_cost_no_channel() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let (proxy, store) = (Proxy::to(&vhost), database.url());
    let rig = Rig::at(&proxy.url(&vhost, ""), |guard| guard.store_url(&store).consumer::<many>()).await;
    let ends: [&[Step]; 6] = [
        &[Step::Succeed],
        &[Step::Fail, Step::Succeed],
        &[Step::FailForGood],
        &[Step::Panic, Step::Succeed],
        &[Step::Take(60_000), Step::Succeed],
        &[Step::Later(10), Step::Fail],
    ];
    let names: Vec<String> = (0..1_000).map(|n| format!("m-{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        for _ in 0..2 {
            rig.publish("many", name, ends[n % ends.len()]).await;
        }
    }
    rig.until(|log| names.iter().all(|name| log.ended(name))).await;
    vhost.until_no_backlog(&["dlq.many"]);
    assert_eq!((proxy.accepted(), proxy.open()), (2, 2));
    assert_undisturbed(&rig);
    rig.shutdown().await;
}

/// Rights of another kind: the user that published is none of the consumer's business.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_message_with_the_user_id_of_its_producer_is_retried_and_becomes_a_letter() {
    let vhost = Vhost::new();
    let rig = Rig::start(&vhost, |guard| guard.consumer::<work>()).await;
    let log_in = vhost.user("producer", &["^$", ".*", "^$"]);
    let (user, _) = log_in.split_once(':').unwrap();
    let producer = RabbitMq::new(&vhost.url_at(&format!("{log_in}@{}", vhost.address()))).unwrap();
    let mut sent = job("theirs", &[Step::Fail, Step::FailForGood]);
    sent.properties.user_id = Some(user.into());
    publish(&producer, "work", &sent).await;
    rig.ended(&["theirs"]).await;
    assert_eq!(rig.log.runs_of("theirs").len(), 2);
    assert_undisturbed(&rig);
    let letter = vhost.letters("dlq.work", 1).await.remove(0);
    let message = letter.message();
    assert_eq!((letter.message_id(), letter.runs(), message.properties.user_id.as_deref()), (Some("theirs"), 2, None));
    assert!(format!("{:?}", message.headers).contains(user), "{:?}", message.headers);
    rig.shutdown().await;
}

/// Twelve rounds through one hold queue: the broker takes none of them for a cycle.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn twelve_rounds_through_one_hold_queue_end_in_one_letter() {
    #[consumer(queue = "rounds", retry(max = 12, delay = "50ms", factor = 1), dlq = "dlq.rounds")]
    async fn rounds(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
        job.carry_out(&log, &cx).await
    }
    let vhost = Vhost::new();
    let rig = Rig::start(&vhost, |guard| guard.consumer::<rounds>()).await;
    let mut sent = job("turns", &[Step::Fail]);
    // Left over from elsewhere: neither the waits nor the letter may end with it.
    sent.properties.expiration = Some("60000".into());
    sent.headers.insert("x-death", "1");
    sent.headers.insert("x-delivery-count", 7_i64);
    publish(&vhost.broker(), "rounds", &sent).await;
    rig.ended(&["turns"]).await;
    assert_eq!(rig.log.runs_of("turns").len(), 13);
    assert!(rig.log.runs_of("turns").iter().all(|run| run.message.properties.message_id.as_deref() == Some("turns")));
    let letter = vhost.letters("dlq.rounds", 1).await.remove(0);
    assert_eq!((letter.reason(), letter.runs(), letter.message_id()), (Reason::Exhausted, 13, Some("turns")));
    assert_eq!(letter.message().properties.expiration, None);
    rig.shutdown().await;
    vhost.until_no_backlog(&[]);
}

/// The broker refuses the topology for good, not for now.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_right_that_is_taken_away_is_unhealthy_until_it_is_given_back() {
    let vhost = Vhost::new();
    let user = vhost.user("fired", &[".*", ".*", ".*"]);
    let proxy = Proxy::to(&vhost);
    let url = proxy.url(&vhost, "").replace("guest:guest@", &format!("{user}@"));
    let rig = Rig::at(&url, |guard| guard.consumer::<work>()).await;
    vhost.grant("fired", &["^$", "^$", "^$"]);
    proxy.cut();
    rig.until_health(|status| matches!(status, Status::Reconnecting { reason } if reason.contains("ACCESS_REFUSED"))).await;
    vhost.grant("fired", &[".*", ".*", ".*"]);
    rig.until_health(Status::is_healthy).await;
    rig.publish("work", "after", &[Step::Succeed]).await;
    rig.ended(&["after"]).await;
    let broker = vhost.broker();
    assert_eq!(within(broker.ping()).await, Ok::<(), BrokerError>(()));
    rig.shutdown().await;
}
