//! What of a message survives its retries and is in its letter, and what must not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod support;

use bytes::Bytes;
use mqguard::broker::{Broker, DeclareMode, Exchange, ExchangeKind, Queue, QueueType, Topology};
use mqguard::{Context, HeaderValue, Headers, Message, Properties, State, consumer};
use support::{DLQ, Job, Log, QUEUE, Rig, Step, Trouble, millis, seconds};

type Logged = State<Log>;

#[consumer(queue = "order.process", retry(max = 3, delay = "5s", factor = 2), dlq = "dlq.order.process.fail")]
async fn base(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// The headers without ours and the broker's own.
fn users(headers: &Headers) -> Headers {
    let mut headers = headers.clone();
    headers.retain(|name, _| {
        let brokers = ["x-death", "x-first-death", "x-last-death"].iter().any(|prefix| name.starts_with(prefix));
        !name.starts_with("mqguard-") && !brokers
    });
    headers
}

fn table<const N: usize>(entries: [(&str, HeaderValue); N]) -> Headers {
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// One header of every type that AMQP has.
fn every_type() -> Headers {
    let bytes = Bytes::from_static(&[0x00, 0x53, 0x74, 0xC1, 0xFF]);
    let nested = table([
        ("deep", HeaderValue::Table(table([("deeper", HeaderValue::Array(vec![HeaderValue::Void, 1_i8.into()]))]))),
        ("empty", HeaderValue::Table(Headers::new())),
    ]);
    table([
        ("void", HeaderValue::Void),
        ("bool", true.into()),
        ("i8", i8::MIN.into()),
        ("u8", u8::MAX.into()),
        ("i16", i16::MIN.into()),
        ("u16", u16::MAX.into()),
        ("i32", i32::MIN.into()),
        ("u32", u32::MAX.into()),
        ("i64", i64::MIN.into()),
        ("f32", f32::MAX.into()),
        ("f64", f64::MIN_POSITIVE.into()),
        ("decimal", HeaderValue::Decimal { scale: 2, value: 1_177 }),
        ("text", "grün".into()),
        ("empty", "".into()),
        ("x-amqp-1.0-properties", HeaderValue::Text(bytes.clone())),
        ("bytes", HeaderValue::Bytes(bytes)),
        ("timestamp", HeaderValue::Timestamp(1_700_000_000)),
        ("array", HeaderValue::Array(vec!["a".into(), 2_i64.into(), HeaderValue::Table(nested.clone())])),
        ("table", HeaderValue::Table(nested)),
        ("", "a name of no letters".into()),
        ("x-tenant", "t1".into()),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
    ])
}

#[tokio::test(start_paused = true)]
async fn user_headers_of_every_type_survive_every_hop_and_are_in_the_letter() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish_with(QUEUE, "A", &[Step::Fail, Step::After(7_000), Step::Fail], |message| message.headers = every_type()).await;
    let letter = rig.letter_of("A", DLQ).await;
    let messages = rig.log.messages("A");
    assert_eq!(messages.len(), 4);
    for message in messages.iter().chain([letter.message()]) {
        assert_eq!(users(&message.headers), every_type());
    }
}

#[tokio::test(start_paused = true)]
async fn all_properties_survive_every_hop_and_are_in_the_letter() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    let text = |text: &str| Some(text.to_owned());
    let mut properties = Properties::default();
    properties.message_id = text("A");
    properties.correlation_id = text("correlation");
    properties.content_type = text("application/json; charset=utf-8");
    properties.content_encoding = text("identity");
    properties.kind = text("order.created");
    properties.app_id = text("shop");
    properties.reply_to = text("amq.rabbitmq.reply-to.g1h2");
    properties.timestamp = Some(1_700_000_000);
    properties.priority = Some(7);
    properties.delivery_mode = Some(2);
    let given = properties.clone();
    rig.publish_with(QUEUE, "A", &[Step::Fail], |message| message.properties = given).await;
    let letter = rig.letter_of("A", DLQ).await;
    let all: Vec<_> = rig.log.messages("A").into_iter().map(|message| message.properties).collect();
    assert_eq!(all, vec![properties.clone(); 4]);
    assert_eq!(letter.message().properties, properties);
}

#[tokio::test(start_paused = true)]
async fn a_transient_message_is_persistent_once_it_waits_or_is_dead() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    for (id, mode, first) in [("A", None, 2), ("B", Some(1), 1)] {
        rig.publish_with(QUEUE, id, &[Step::Fail], |message| message.properties.delivery_mode = mode).await;
        let letter = rig.letter_of(id, DLQ).await;
        let modes: Vec<_> = rig.log.messages(id).iter().map(|message| message.properties.delivery_mode).collect();
        assert_eq!(modes, [first, 2, 2, 2].map(Some));
        assert_eq!(letter.message().properties.delivery_mode, Some(2));
    }
}

#[tokio::test(start_paused = true)]
async fn an_expiration_shorter_than_the_wait_loses_neither_the_retry_nor_the_letter() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish_with(QUEUE, "A", &[Step::Fail], |message| message.properties.expiration = Some("3000".into())).await;
    let letter = rig.letter_of("A", DLQ).await;
    assert_eq!(rig.log.seconds("A"), [0, 5, 15, 35]);
    rig.let_an_hour_pass().await;
    rig.assert_empty_but(&[(DLQ, 1)]);
    let expirations: Vec<_> = rig.log.messages("A").into_iter().map(|message| message.properties.expiration).collect();
    assert_eq!(expirations, [Some("3000".to_owned()), None, None, None]);
    assert_eq!(letter.message().properties.expiration, None);
    assert_eq!(letter.message().headers.text("mqguard-original-expiration"), Some("3000"));
}

#[tokio::test(start_paused = true)]
async fn the_publishing_user_is_noted_and_not_copied() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish_with(QUEUE, "A", &[Step::Fail], |message| message.properties.user_id = Some("producer".into())).await;
    let letter = rig.letter_of("A", DLQ).await;
    let users: Vec<_> = rig.log.messages("A").into_iter().map(|message| message.properties.user_id).collect();
    assert_eq!(users, [Some("producer".to_owned()), None, None, None]);
    assert_eq!(letter.message().properties.user_id, None);
    assert_eq!(letter.message().headers.text("mqguard-original-user-id"), Some("producer"));
}

#[tokio::test(start_paused = true)]
async fn extra_recipients_do_not_get_the_copies() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    let cc = HeaderValue::Array(vec!["audit.log".into(), "order.process".into()]);
    let both = |message: &mut Message| {
        message.headers.insert("CC", cc.clone());
        message.headers.insert("BCC", vec![HeaderValue::from("secret")]);
    };
    rig.publish_with(QUEUE, "A", &[Step::Fail], both).await;
    let letter = rig.letter_of("A", DLQ).await;
    for message in rig.log.messages("A").iter().skip(1).chain([letter.message()]) {
        assert_eq!((message.headers.get("CC"), message.headers.get("BCC")), (None, None));
        assert_eq!(message.headers.get("mqguard-original-cc"), Some(&cc));
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_broker_wrote_about_earlier_hops_is_not_copied() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    let names = ["x-death", "x-delivery-count", "x-acquired-count", "x-first-death-queue", "x-last-death-reason", "x-opt-deaths"];
    let old = |message: &mut Message| names.iter().for_each(|name| message.headers.insert(*name, "of old"));
    rig.publish_with(QUEUE, "A", &[Step::Fail], old).await;
    let letter = rig.letter_of("A", DLQ).await;
    for name in names {
        assert_eq!(letter.message().headers.get(name), None, "{name}");
        for message in rig.log.messages("A").iter().skip(1) {
            assert_ne!(message.headers.get(name), Some(&"of old".into()), "{name}");
        }
    }
}

/// Spoilt histories that would stop a reader that trusts their shape.
#[tokio::test(start_paused = true)]
async fn a_forged_x_death_does_no_harm() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    let count = |value: HeaderValue| HeaderValue::Table(table([("count", value)]));
    let forged: [HeaderValue; 5] = [
        "1".into(),
        count(1_i64.into()),
        HeaderValue::Array(vec!["count".into()]),
        HeaderValue::Array(vec![HeaderValue::Table(Headers::new())]),
        HeaderValue::Array(vec![count("1".into())]),
    ];
    for (n, death) in forged.into_iter().enumerate() {
        for (step, runs) in [(Step::Succeed, 1), (Step::FailForGood, 1), (Step::Fail, 4)] {
            let id = format!("{n} {step:?}");
            rig.publish_with(QUEUE, &id, &[step], |message| message.headers.insert("x-death", death.clone())).await;
            rig.log.until(|log| log.ended(&id)).await;
            assert_eq!(rig.log.runs_of(&id).len(), runs, "{id}");
        }
    }
    assert_eq!(rig.log.letters(), 10);
}

#[consumer(
    queue = "painter",
    bind(exchange = "colours", kind = "direct", routing_key = "orange"),
    retry(max = 2, delay = "5s"),
    dlq = "dlq.painter"
)]
async fn painter(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn a_retry_returns_to_its_queue_though_another_is_named_like_the_routing_key() {
    let rig = Rig::start(|guard| guard.consumer::<painter>()).await;
    let orange = Topology { queues: vec![Queue::new("orange", QueueType::Quorum)], ..Topology::default() };
    rig.broker.declare(&orange, DeclareMode::Declare).await.unwrap();
    let job = Job { name: "A".into(), steps: vec![Step::Fail] };
    rig.publisher.json(&job).unwrap().message_id("A").to_exchange("colours", "orange").await.unwrap();
    let letter = rig.letter_of("A", "dlq.painter").await;
    assert_eq!(rig.log.seconds("A"), [0, 5, 10]);
    rig.assert_empty_but(&[("dlq.painter", 1)]);
    // Where it was published first is known in every run and in the letter.
    for message in rig.log.messages("A").iter().skip(1) {
        assert_eq!(message.headers.text("mqguard-exchange"), Some("colours"));
        assert_eq!(message.headers.text("mqguard-routing-key"), Some("orange"));
    }
    assert_eq!((letter.exchange(), letter.routing_key()), (Some("colours"), Some("orange")));
}

#[consumer(
    queue = "order.events",
    bind(exchange = "events", kind = "fanout"),
    retry(max = 3, delay = "5s"),
    dlq = "dlq.order.events"
)]
async fn order_events(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    let own = Job { name: format!("order {}", job.name), steps: vec![job.steps[0]] };
    own.carry_out(&log, &cx).await
}

#[consumer(queue = "audit.log", bind(exchange = "events", kind = "fanout"), retry(max = 3, delay = "5s"), dlq = "dlq.audit.log")]
async fn audit(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    let own = Job { name: format!("audit {}", job.name), steps: vec![job.steps[1]] };
    own.carry_out(&log, &cx).await
}

/// Publishes one event that fares so in the one queue and so in the other; the runs in each.
async fn fan_out(order: Step, log: Step) -> (usize, usize, Vec<(String, usize)>) {
    let rig = Rig::start(|guard| guard.consumer::<order_events>().consumer::<audit>()).await;
    let job = Job { name: "A".into(), steps: vec![order, log] };
    rig.publisher.json(&job).unwrap().message_id("A").to_exchange("events", "").await.unwrap();
    rig.let_an_hour_pass().await;
    let left = rig.broker.queues().into_iter().map(|queue| (queue.clone(), rig.broker.depth(&queue)));
    let left = left.filter(|(_, depth)| *depth > 0).collect();
    (rig.log.runs_of("order A").len(), rig.log.runs_of("audit A").len(), left)
}

#[tokio::test(start_paused = true)]
async fn retries_of_a_fanned_out_event_reach_only_the_queue_that_failed() {
    let one = |queue: &str| (queue.to_owned(), 1);
    assert_eq!(fan_out(Step::Fail, Step::Succeed).await, (4, 1, vec![one("dlq.order.events")]));
    assert_eq!(fan_out(Step::Succeed, Step::Fail).await, (1, 4, vec![one("dlq.audit.log")]));
    assert_eq!(fan_out(Step::Fail, Step::Fail).await, (4, 4, vec![one("dlq.audit.log"), one("dlq.order.events")]));
}

#[tokio::test(start_paused = true)]
async fn the_first_exchange_is_not_published_to_again() {
    let rig = Rig::start(|guard| guard.consumer::<painter>()).await;
    let tap = Topology {
        exchanges: vec![Exchange { name: "colours".into(), kind: ExchangeKind::Direct }],
        queues: vec![Queue::new("tap", QueueType::Classic)],
        bindings: vec![mqguard::broker::Binding {
            queue: "tap".into(),
            exchange: "colours".into(),
            routing_key: "orange".into(),
        }],
    };
    rig.broker.declare(&tap, DeclareMode::Declare).await.unwrap();
    let job = Job { name: "A".into(), steps: vec![Step::Fail] };
    rig.publisher.json(&job).unwrap().message_id("A").to_exchange("colours", "orange").await.unwrap();
    rig.letter_of("A", "dlq.painter").await;
    assert_eq!(rig.broker.depth("tap"), 1);
}

#[tokio::test(start_paused = true)]
async fn our_headers_have_one_type_each() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::Fail]).await;
    let letter = rig.letter_of("A", DLQ).await;
    let allowed = |value: &HeaderValue| matches!(value, HeaderValue::I64(_) | HeaderValue::Text(_) | HeaderValue::Array(_));
    for message in rig.log.messages("A").iter().skip(1).chain([letter.message()]) {
        let ours: Vec<_> = message.headers.iter().filter(|(name, _)| name.starts_with("mqguard-")).collect();
        assert!(ours.len() >= 6 && ours.iter().all(|(_, value)| allowed(value)), "{ours:?}");
    }
    let counts: Vec<_> = rig.log.messages("A").iter().map(|message| message.headers.get("mqguard-attempt").cloned()).collect();
    assert_eq!(counts, [None, Some(1_i64.into()), Some(2_i64.into()), Some(3_i64.into())]);
    assert_eq!(letter.message().headers.get("mqguard-attempt"), None, "a replay begins anew");
}

#[tokio::test(start_paused = true)]
async fn foreign_headers_about_delays_change_no_wait() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    let foreign = |message: &mut Message| {
        message.properties.expiration = Some("60000".into());
        message.headers.insert("x-delay", 60_000_i32);
        message.headers.insert("x-retry-count", 9_i32);
    };
    rig.publish_with(QUEUE, "A", &[Step::Fail], foreign).await;
    let letter = rig.letter_of("A", DLQ).await;
    assert_eq!(rig.log.times("A"), [millis(0), seconds(5), seconds(15), seconds(35)]);
    assert_eq!(letter.message().headers.get("x-delay"), Some(&60_000_i32.into()));
}
