//! The queues that a consumer declares, and what happens when they are otherwise or gone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod support;

use mqguard::broker::{
    Binding, Broker, DeadLetterTarget, DeclareMode, Exchange, ExchangeKind, Mismatch, Queue, QueueType, Topology,
};
use mqguard::{Context, Guard, MemoryBroker, Reason, State, consumer, dead_letter_consumer};
use support::{DLQ, Framed, Job, Log, QUEUE, Rig, Step, Trouble, What, seconds};

type Logged = State<Log>;

#[consumer(queue = "order.process", retry(max = 3, delay = "5s", factor = 2), dlq = "dlq.order.process.fail")]
async fn base(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(
    queue = "bills",
    queue_type = "classic",
    bind(exchange = "orders", routing_key = "order.*"),
    bind(exchange = "refunds", kind = "direct", routing_key = "refund"),
    bind(exchange = "audit", kind = "fanout"),
    retry(max = 3, schedule = ["1m", "250ms", "1m"]),
    dlq(queue = "dead.bills", exchange = "dead")
)]
async fn bills(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

fn target(exchange: &str, routing_key: &str) -> Option<DeadLetterTarget> {
    Some(DeadLetterTarget { exchange: exchange.into(), routing_key: routing_key.into() })
}

fn binding(queue: &str, exchange: &str, routing_key: &str) -> Binding {
    Binding { queue: queue.into(), exchange: exchange.into(), routing_key: routing_key.into() }
}

fn exchange(name: &str, kind: ExchangeKind) -> Exchange {
    Exchange { name: name.into(), kind }
}

fn quorum(name: &str) -> Queue {
    Queue::new(name, QueueType::Quorum)
}

/// What a guard with these consumers declares.
async fn declared(build: impl FnOnce(Guard) -> Guard) -> Vec<Topology> {
    let broker = Framed::new(131_072);
    build(Log::new().attach(Guard::with_broker(broker.clone()))).declare().await.unwrap();
    broker.declared.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_consumer_declares_its_queue_its_hold_queues_and_its_dead_letter_queue() {
    let hold = |delay| Queue {
        message_ttl: Some(seconds(delay)),
        dead_letters: target("", QUEUE),
        ..quorum(&format!("order.process.retry.{delay}s"))
    };
    let expected = Topology {
        exchanges: vec![exchange("dlx.exchange", ExchangeKind::Direct)],
        queues: vec![
            Queue { delivery_limit: Some(1_000_000_000), ..quorum(DLQ) },
            Queue { dead_letters: target("dlx.exchange", DLQ), delivery_limit: Some(20), ..quorum(QUEUE) },
            hold(5),
            hold(10),
            hold(20),
            Queue { delivery_limit: Some(1_000_000_000), ..quorum("order.process.quarantine") },
        ],
        bindings: vec![binding(DLQ, "dlx.exchange", DLQ)],
    };
    assert_eq!(declared(|guard| guard.consumer::<base>()).await, [expected]);
}

#[tokio::test(start_paused = true)]
async fn what_an_attribute_names_is_declared_as_it_says() {
    let classic = |name: &str| Queue::new(name, QueueType::Classic);
    let hold = |label: &str, ms| Queue {
        message_ttl: Some(support::millis(ms)),
        dead_letters: target("", "bills"),
        ..classic(&format!("bills.retry.{label}"))
    };
    let expected = Topology {
        exchanges: vec![
            exchange("dead", ExchangeKind::Direct),
            exchange("orders", ExchangeKind::Topic),
            exchange("refunds", ExchangeKind::Direct),
            exchange("audit", ExchangeKind::Fanout),
        ],
        queues: vec![
            classic("dead.bills"),
            Queue { dead_letters: target("dead", "dead.bills"), ..classic("bills") },
            hold("250ms", 250),
            hold("1m", 60_000),
            classic("bills.quarantine"),
        ],
        bindings: vec![
            binding("dead.bills", "dead", "dead.bills"),
            binding("bills", "orders", "order.*"),
            binding("bills", "refunds", "refund"),
            binding("bills", "audit", ""),
        ],
    };
    assert_eq!(declared(|guard| guard.consumer::<bills>()).await, [expected]);
}

#[dead_letter_consumer(queue = "dead.bills", of = bills)]
async fn dead_bills(_job: mqguard::Raw) {}

#[dead_letter_consumer(queue = "dlq.somebody")]
async fn dead_anything(_job: mqguard::Raw) {}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_consumer_declares_the_queue_as_the_consumer_does_that_it_is_of() {
    let of_bills = declared(|guard| guard.consumer::<bills>().consumer::<dead_bills>()).await;
    let quarantine = Queue { delivery_limit: Some(1_000_000_000), ..quorum("dead.bills.quarantine") };
    assert_eq!(of_bills[1].queues, [of_bills[0].queues[0].clone(), quarantine]);
    assert_eq!(
        (&of_bills[1].exchanges[..], &of_bills[1].bindings[..]),
        (&of_bills[0].exchanges[..1], &of_bills[0].bindings[..1])
    );
    let of_anything = declared(|guard| guard.consumer::<dead_anything>()).await;
    let queue = |name| Queue { delivery_limit: Some(1_000_000_000), ..quorum(name) };
    let queues = vec![queue("dlq.somebody"), queue("dlq.somebody.quarantine")];
    assert_eq!(of_anything, [Topology { queues, ..Topology::default() }]);
}

#[tokio::test(start_paused = true)]
async fn messages_arrive_by_every_binding() {
    let rig = Rig::start(|guard| guard.consumer::<bills>()).await;
    let routes = [("orders", "order.paid"), ("refunds", "refund"), ("audit", "anything"), ("", "bills")];
    for (n, (exchange, key)) in routes.into_iter().enumerate() {
        let job = Job { name: n.to_string(), steps: vec![Step::Succeed] };
        rig.publisher.json(&job).unwrap().message_id(n.to_string()).to_exchange(exchange, key).await.unwrap();
        rig.log.until(|log| log.ended(&n.to_string())).await;
        let origin = rig.log.runs_of(&n.to_string())[0].origin.clone();
        assert_eq!((origin.queue, origin.exchange.as_str(), origin.routing_key.as_str()), ("bills", exchange, key));
    }
    let job = Job { name: "stray".into(), steps: vec![] };
    let stray = rig.publisher.json(&job).unwrap().to_exchange("orders", "order.paid.late").await;
    assert_eq!(
        stray.unwrap_err().to_string(),
        "no queue takes a message for exchange `orders` with routing key `order.paid.late`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_tells_where_its_message_first_came_from() {
    let rig = Rig::start(|guard| guard.consumer::<bills>()).await;
    let job = Job { name: "A".into(), steps: vec![Step::Fail, Step::Fail, Step::Succeed] };
    rig.publisher.json(&job).unwrap().message_id("A").to_exchange("orders", "order.paid").await.unwrap();
    rig.log.until(|log| log.ended("A")).await;
    let origins: Vec<_> = rig.log.runs_of("A").into_iter().map(|run| (run.origin.exchange, run.origin.routing_key)).collect();
    assert_eq!(origins, vec![("orders".to_owned(), "order.paid".to_owned()); 3]);
}

#[tokio::test(start_paused = true)]
async fn queues_are_declared_without_what_handlers_need() {
    let broker = MemoryBroker::new();
    Guard::with_broker(broker.clone()).consumer::<base>().declare().await.unwrap();
    assert_eq!(broker.queues().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_second_start_finds_everything_as_it_declares_it() {
    let rig = Rig::start(|guard| guard.consumer::<base>().consumer::<bills>()).await;
    rig.publish(QUEUE, "A", &[Step::Fail, Step::Succeed]).await;
    rig.log.until(|log| log.count() == 1).await;
    let (broker, queues) = (rig.broker.clone(), rig.broker.queues());
    rig.shutdown().await;
    let rig = Rig::on(broker.clone(), broker, |guard| guard.consumer::<base>().consumer::<bills>()).await;
    assert_eq!(rig.broker.queues(), queues);
    // What waited for its retry meanwhile is there.
    rig.log.until(|log| log.ended("A")).await;
    assert_eq!(rig.log.seconds("A"), [5]);
}

/// The error of a guard that starts on a broker with this topology.
async fn start_error(before: Topology, mode: DeclareMode) -> String {
    let broker = MemoryBroker::new();
    broker.declare(&before, DeclareMode::Declare).await.unwrap();
    let log = Log::new();
    let guard = log.attach(Guard::with_broker(broker)).consumer::<base>().declare_mode(mode);
    let error = guard.start().await.unwrap_err();
    assert_eq!(log.now(), seconds(0), "it is told at once");
    error.to_string()
}

const CURE: &str = "Delete it once it is empty and let it be declared anew, or give it another name";

/// A hold queue that does not lead back to its queue would lose what waits in it.
#[test]
fn leaving_a_queue_as_it_is_is_advised_only_where_it_loses_nothing() {
    for (argument, is_harmless) in [
        ("x-queue-type", true),
        ("x-delivery-limit", true),
        ("x-message-ttl", false),
        ("x-dead-letter-exchange", false),
        ("x-dead-letter-routing-key", false),
    ] {
        let (name, argument) = ("order.process.retry.1s".to_owned(), argument.to_owned());
        let mismatch = Mismatch { what: "queue", name, argument, declared: String::new(), actual: "none".to_owned() };
        let told = mismatch.to_string();
        assert!(told.contains("is none, declared is \"\". ") && told.contains(CURE), "{told}");
        assert_eq!(told.contains("DeclareMode::Verify"), is_harmless, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_with_other_arguments_stops_the_start_and_the_error_says_what_to_do() {
    let queue = |queue: Queue| Topology { queues: vec![queue], ..Topology::default() };
    let cases = [
        (quorum(QUEUE), "order.process", "x-dead-letter-exchange", "none", "dlx.exchange"),
        (Queue::new(QUEUE, QueueType::Classic), "order.process", "x-queue-type", "classic", "quorum"),
        (quorum(DLQ), DLQ, "x-delivery-limit", "none", "1000000000"),
        (
            Queue { message_ttl: Some(seconds(6)), dead_letters: target("", QUEUE), ..quorum("order.process.retry.5s") },
            "order.process.retry.5s",
            "x-message-ttl",
            "6000",
            "5000",
        ),
    ];
    for (there, name, argument, actual, declared) in cases {
        let more = if ["x-queue-type", "x-delivery-limit"].contains(&argument) {
            "; or leave it as it is with `DeclareMode::Verify`"
        } else {
            ""
        };
        assert_eq!(
            start_error(queue(there), DeclareMode::Declare).await,
            format!(
                "consumer `base` on queue `order.process`: queue `{name}` is there with other settings: \
                 `{argument}` is {actual}, declared is {declared}. {CURE}{more}"
            )
        );
    }
    let other = Topology { exchanges: vec![exchange("dlx.exchange", ExchangeKind::Fanout)], ..Topology::default() };
    let error = start_error(other, DeclareMode::Declare).await;
    assert!(
        error.contains("exchange `dlx.exchange` is there with other settings: `type` is fanout, declared is direct"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn verifying_names_what_is_missing_and_declares_nothing() {
    let there = Topology {
        exchanges: vec![exchange("dlx.exchange", ExchangeKind::Direct)],
        queues: vec![quorum(DLQ), quorum(QUEUE), quorum("order.process.retry.5s"), quorum("order.process.retry.20s")],
        ..Topology::default()
    };
    let missing = |what: &str, name: &str| {
        format!(
            "consumer `base` on queue `order.process`: {what} `{name}` does not exist: declare it, or let mqguard do so \
             (`DeclareMode::Declare`)"
        )
    };
    assert_eq!(start_error(Topology::default(), DeclareMode::Verify).await, missing("exchange", "dlx.exchange"));
    assert_eq!(start_error(there, DeclareMode::Verify).await, missing("queue", "order.process.retry.10s"));
    assert_eq!(start_error(Topology::default(), DeclareMode::Skip).await, missing("queue", QUEUE));
}

/// A broker on which everything was declared by somebody, with other arguments than ours where that does no harm.
async fn prepared() -> MemoryBroker {
    let broker = MemoryBroker::new();
    Log::new().attach(Guard::with_broker(broker.clone())).consumer::<base>().declare().await.unwrap();
    broker.delete_queue(DLQ);
    let dlq = Topology {
        queues: vec![Queue::new(DLQ, QueueType::Classic)],
        bindings: vec![binding(DLQ, "dlx.exchange", DLQ)],
        ..Topology::default()
    };
    broker.declare(&dlq, DeclareMode::Declare).await.unwrap();
    broker
}

#[tokio::test(start_paused = true)]
async fn verified_and_skipped_queues_are_used_as_they_are() {
    for mode in [DeclareMode::Verify, DeclareMode::Skip] {
        let broker = prepared().await;
        let rig = Rig::on(broker.clone(), broker, |guard| guard.consumer::<base>().declare_mode(mode)).await;
        rig.publish(QUEUE, "A", &[Step::Fail, Step::After(7_000), Step::Fail]).await;
        let letter = rig.letter_of("A", DLQ).await;
        assert_eq!((rig.log.seconds("A"), letter.reason()), (vec![0, 5, 12, 32], Reason::Exhausted));
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_declared_a_letter_waits_for_its_queue_without_another_run() {
    for mode in [DeclareMode::Verify, DeclareMode::Skip] {
        let broker = prepared().await;
        let rig = Rig::on(broker.clone(), broker, |guard| guard.consumer::<base>().declare_mode(mode)).await;
        rig.broker.delete_queue(DLQ);
        rig.publish(QUEUE, "A", &[Step::FailForGood]).await;
        tokio::time::sleep(seconds(60)).await;
        assert_eq!((rig.log.count(), rig.log.letters(), rig.broker.unsettled(QUEUE)), (1, 0, 1));
        Log::new().attach(Guard::with_broker(rig.broker.clone())).consumer::<base>().declare().await.unwrap();
        rig.letter_of("A", DLQ).await;
        let end = rig.log.end_of("A").unwrap();
        assert!(end <= seconds(71), "{end:?}");
        assert_eq!(rig.log.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_queue_that_was_deleted_is_declared_again() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    for id in ["A", "B"] {
        rig.broker.delete_queue(DLQ);
        rig.publish(QUEUE, id, &[Step::FailForGood]).await;
        rig.letter_of(id, DLQ).await;
        assert_eq!((rig.log.seconds(id), rig.log.end_of(id)), (vec![0], Some(seconds(0))));
    }
    assert_eq!(rig.broker.queues().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn hold_queues_that_were_deleted_are_declared_again() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    let queues = rig.broker.queues();
    rig.broker.delete_queue("order.process.retry.5s");
    rig.publish(QUEUE, "A", &[Step::Fail, Step::Succeed]).await;
    rig.log.until(|log| log.ended("A")).await;
    assert_eq!((rig.log.seconds("A"), rig.broker.queues()), (vec![0, 5], queues.clone()));

    // The same for one that is declared on demand, which the consumer believes to be there.
    let on_demand = |rig: &Rig| rig.broker.queues().into_iter().find(|queue| queue.contains(".retry.7s."));
    for (id, times) in [("B", [5, 12]), ("C", [12, 19])] {
        if let Some(queue) = on_demand(&rig) {
            rig.broker.delete_queue(&queue);
        }
        rig.publish(QUEUE, id, &[Step::After(7_000), Step::Succeed]).await;
        rig.log.until(|log| log.ended(id)).await;
        assert_eq!(rig.log.seconds(id), times);
        assert!(on_demand(&rig).is_some());
    }
    rig.assert_empty_but(&[]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_was_deleted_is_declared_and_consumed_again() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.broker.delete_queue(QUEUE);
    tokio::time::sleep(seconds(10)).await;
    assert!(rig.is_healthy());
    rig.publish(QUEUE, "A", &[Step::Fail, Step::Succeed]).await;
    rig.log.until(|log| log.ended("A")).await;
    assert_eq!(rig.log.seen_of("A").last(), Some(&What::Processed));
}

/// A message whose wait ends while its queue is gone is not lost.
#[tokio::test(start_paused = true)]
async fn a_retry_outlives_the_queue_that_it_returns_to() {
    let broker = MemoryBroker::new();
    let rig = Rig::on(broker.clone(), broker.clone(), |guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::Fail, Step::Succeed]).await;
    rig.log.until(|log| log.count() == 1).await;
    rig.shutdown().await;
    broker.delete_queue(QUEUE);
    tokio::time::sleep(seconds(60)).await;
    let rig = Rig::on(broker.clone(), broker, |guard| guard.consumer::<base>()).await;
    rig.log.until(|log| log.ended("A")).await;
    assert_eq!(rig.log.seconds("A"), [0]);
}

#[consumer(queue = "order.process")]
async fn rival(_job: Job) {}

#[tokio::test(start_paused = true)]
async fn two_consumers_of_one_queue_are_told_at_start() {
    let guard = Log::new().attach(Guard::embedded()).consumer::<base>().consumer::<rival>();
    assert_eq!(
        guard.start().await.unwrap_err().to_string(),
        "`base` and `rival` consume the same queue `order.process`: each message would reach only one of them; \
         give each a queue of its own"
    );
}
