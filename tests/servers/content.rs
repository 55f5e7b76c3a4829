//! Large bodies, headers of every type and errors of any length, through a retry and into the letter.

use std::time::Duration;

use mqguard::broker::{Broker, DeadLetterTarget, DeclareMode, HeaderValue, Headers, Queue, QueueType, Topology};
use mqguard::{Attempt, Context, Message, Raw, Reason, RetryableError, State, consumer};

use crate::proxy::Proxy;
use crate::script::{Log, frame_len};
use crate::support::{Rig, Vhost, publish, within};

#[derive(Debug, thiserror::Error, RetryableError)]
enum Refusal {
    #[error("{0}")]
    #[retryable]
    Passing(String),
    #[error("the second time")]
    #[fatal]
    Final(#[source] Cause),
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

/// The text of the errors.
#[derive(Clone)]
struct Text(String);

/// Fails, and then fails for good.
async fn refuse(text: &Text, attempt: Attempt, log: &Log, cx: &Context) -> Result<(), Refusal> {
    log.ran("content", cx);
    if attempt.retries == 0 { Err(Refusal::Passing(text.0.clone())) } else { Err(Refusal::Final(Cause(text.0.clone()))) }
}

#[consumer(queue = "content", retry(max = 1, delay = "50ms"), dlq = "dlq.content")]
async fn on_quorum(_body: Raw, text: State<Text>, attempt: Attempt, log: State<Log>, cx: Context) -> Result<(), Refusal> {
    refuse(&text, attempt, &log, &cx).await
}

#[consumer(queue = "content.classic", retry(max = 1, delay = "50ms"), dlq = "dlq.content.classic", queue_type = "classic")]
async fn on_classic(_body: Raw, text: State<Text>, attempt: Attempt, log: State<Log>, cx: Context) -> Result<(), Refusal> {
    refuse(&text, attempt, &log, &cx).await
}

const QUEUES: [&str; 2] = ["content", "content.classic"];

async fn rig(vhost: &Vhost, error: &str) -> Rig {
    Rig::start(vhost, |guard| guard.state(Text(error.into())).consumer::<on_quorum>().consumer::<on_classic>()).await
}

fn message(id: &str, body: Vec<u8>, headers: Headers) -> Message {
    let mut message = Message { body: body.into(), headers, ..Message::default() };
    message.properties.message_id = Some(id.into());
    message.properties.delivery_mode = Some(2);
    message
}

/// Headers that neither mqguard nor the broker wrote.
fn own(headers: &Headers) -> Headers {
    let mut own = headers.clone();
    own.retain(|name, _| !name.starts_with("x-") && !name.starts_with("mqguard-"));
    own
}

/// A header of every type.
fn every_type() -> Headers {
    let mut inner = Headers::new();
    inner.insert("array", HeaderValue::Array(vec![1_i32.into(), HeaderValue::Void, HeaderValue::Array(vec![])]));
    let mut table = Headers::new();
    table.insert("table", HeaderValue::Table(inner));
    table.insert("", "an empty name");
    let values = [
        ("void", HeaderValue::Void),
        ("bool", true.into()),
        ("i8", i8::MIN.into()),
        ("u8", u8::MAX.into()),
        ("i16", i16::MIN.into()),
        ("u16", u16::MAX.into()),
        ("i32", i32::MIN.into()),
        ("u32", u32::MAX.into()),
        ("i64", i64::MIN.into()),
        ("f32", 1.5_f32.into()),
        ("f64", (-0.1_f64).into()),
        ("decimal", HeaderValue::Decimal { scale: 2, value: 12_345 }),
        ("text", "grüße".into()),
        ("no text", HeaderValue::Text(vec![0, 0xc1, 0xff].into())),
        ("bytes", HeaderValue::Bytes(vec![0, 255, 128].into())),
        ("timestamp", HeaderValue::Timestamp(1_700_000_000)),
        ("table", HeaderValue::Table(table)),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Headers of about this many bytes.
fn bulky(bytes: usize) -> Headers {
    (0..bytes / 1_024).map(|n| (format!("h-{n}"), HeaderValue::Text(vec![b'x'; 1_016].into()))).collect()
}

/// Publishes a message to each queue, sees its second run as it was published, and returns the letters.
async fn through(vhost: &Vhost, rig: &Rig, sent: &Message) -> Vec<mqguard::DeadLetter<serde_json::Value>> {
    let publisher = vhost.broker();
    let mut letters = Vec::new();
    for queue in QUEUES {
        let before = rig.log.count();
        publish(&publisher, queue, sent).await;
        let letter = vhost.letters(&format!("dlq.{queue}"), 1).await.remove(0);
        let runs = rig.log.runs();
        assert_eq!(runs.len() - before, 2, "{queue}");
        for run in &runs[before..] {
            assert!(run.message.body == sent.body, "{queue}: the body of run {}", run.attempt.retries);
            assert_eq!(own(&run.message.headers), sent.headers, "{queue}");
        }
        assert_eq!((letter.reason(), letter.runs()), (Reason::Fatal, 2), "{queue}");
        letters.push(letter);
    }
    assert!(rig.running.health().is_healthy());
    letters
}

/// The consumers never lost their connection.
#[track_caller]
fn assert_undisturbed(rig: &Rig) {
    let redelivered = rig.log.seen().iter().any(|seen| seen.what == crate::script::What::Other("Returned".into()));
    assert!(!redelivered && rig.running.health().is_healthy());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn headers_of_every_type_arrive() {
    let vhost = Vhost::new();
    let rig = rig(&vhost, "no").await;
    let mut sent = message("types", b"\x00\xffnot JSON".to_vec(), every_type());
    let properties = &mut sent.properties;
    properties.correlation_id = Some("c-1".into());
    properties.content_type = Some("application/x-nothing".into());
    properties.content_encoding = Some("identity".into());
    properties.kind = Some("order.placed".into());
    properties.app_id = Some("shop".into());
    properties.reply_to = Some("answers".into());
    properties.timestamp = Some(1_700_000_000);
    properties.priority = Some(3);
    for letter in through(&vhost, &rig, &sent).await {
        assert_eq!(letter.body(), &sent.body);
        assert_eq!(own(&letter.message().headers), sent.headers);
        assert_eq!(letter.message().properties, sent.properties);
        assert_eq!(letter.cut(), Vec::<&str>::new());
    }
    assert_undisturbed(&rig);
    rig.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_body_of_16_megabytes_arrives() {
    let vhost = Vhost::new();
    let rig = rig(&vhost, "no").await;
    let body: Vec<u8> = (0..16_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let sent = message("large", body, Headers::new());
    for letter in through(&vhost, &rig, &sent).await {
        assert!(letter.body() == &sent.body);
    }
    assert_undisturbed(&rig);
    rig.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn headers_of_100_kibibytes_arrive() {
    let vhost = Vhost::new();
    let rig = rig(&vhost, "no").await;
    let sent = message("headers", b"{}".to_vec(), bulky(100 * 1_024));
    for letter in through(&vhost, &rig, &sent).await {
        assert_eq!(own(&letter.message().headers), sent.headers);
        assert_eq!(letter.cut(), Vec::<&str>::new());
    }
    assert_undisturbed(&rig);
    rig.shutdown().await;
}

/// So many that there is no room for what a retry or a letter says: the letter is published all the same.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn headers_that_fill_the_frame_make_a_letter() {
    let vhost = Vhost::new();
    let rig = rig(&vhost, "no").await;
    let sent = message("full", b"{}".to_vec(), bulky(125 * 1_024));
    let publisher = vhost.broker();
    for queue in QUEUES {
        publish(&publisher, queue, &sent).await;
        let letter = vhost.letters(&format!("dlq.{queue}"), 1).await.remove(0);
        assert_eq!((letter.reason(), letter.runs()), (Reason::OversizedHeaders, 1));
        assert_eq!(letter.body(), &sent.body);
        let kept = own(&letter.message().headers);
        assert!(!letter.cut().is_empty() && kept.len() > 100 && kept.len() < sent.headers.len(), "{:?}", letter.cut());
    }
    assert_undisturbed(&rig);
    rig.shutdown().await;
}

/// A chain of queues in which a message expires at once, with names so long that what the broker notes of it takes kilobytes.
async fn detour(vhost: &Vhost, to: &str) -> String {
    let mut next = to.to_owned();
    for n in 0..8 {
        let mut queue = Queue::new(format!("detour-{n}-{to}-{}", "x".repeat(200)), QueueType::Classic);
        queue.message_ttl = Some(Duration::from_millis(1));
        queue.dead_letters = Some(DeadLetterTarget { exchange: String::new(), routing_key: next });
        next = queue.name.clone();
        within(vhost.broker().declare(&Topology { queues: vec![queue], ..Topology::default() }, DeclareMode::Declare))
            .await
            .unwrap();
    }
    next
}

/// The broker sends what it has added itself, and what others agreed on, though it is more than was agreed on here.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn headers_that_outgrow_the_frame_on_the_way_do_not_break_the_connection() {
    const FRAME: usize = 131_072;
    let vhost = Vhost::new();
    let proxy = Proxy::to(&vhost);
    for (agreed, parameters) in [(FRAME, ""), (8_192, "frame_max=8192")] {
        let before = proxy.accepted();
        let build = |guard: mqguard::Guard| guard.state(Text("no".into())).consumer::<on_quorum>().consumer::<on_classic>();
        let rig = Rig::at(&proxy.url(&vhost, parameters), build).await;
        for queue in QUEUES {
            let runs = rig.log.count();
            let sent = message("oversized", b"{}".to_vec(), bulky(125 * 1_024));
            publish(&vhost.broker(), &detour(&vhost, queue).await, &sent).await;
            let letter = vhost.letters(&format!("dlq.{queue}"), 1).await.remove(0);
            assert_eq!((letter.reason(), letter.runs()), (Reason::OversizedHeaders, 1), "{queue}, {agreed}");
            assert_eq!((letter.message_id(), letter.body()), (Some("oversized"), &sent.body));
            assert!(frame_len(letter.message()) <= agreed, "{queue}: {}", frame_len(letter.message()));
            let run = &rig.log.runs()[runs];
            assert_eq!(own(&run.message.headers), sent.headers, "{queue}, {agreed}: the handler sees all of it");
            assert!(frame_len(&run.message) > FRAME, "{queue}: it did not grow: {}", frame_len(&run.message));
        }
        // One to consume and one to publish, from first to last.
        assert_eq!((rig.log.count(), proxy.accepted() - before), (2, 2), "a connection was lost");
        assert_undisturbed(&rig);
        rig.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn an_error_of_300_000_bytes_is_cut() {
    let vhost = Vhost::new();
    // Two bytes each: a cut in the middle of one would not be text any more.
    let rig = rig(&vhost, &"é".repeat(150_000)).await;
    let sent = message("error", b"{\"n\":1}".to_vec(), every_type());
    for letter in through(&vhost, &rig, &sent).await {
        assert_eq!(letter.body(), &sent.body);
        assert_eq!(own(&letter.message().headers), sent.headers);
        let error = letter.error().unwrap();
        assert_eq!(error.message, "the second time");
        assert!(error.chain[0].starts_with("éé") && error.chain[0].len() < 5_000, "{} bytes", error.chain[0].len());
        assert_eq!(letter.attempts().len(), 2);
        assert!(letter.attempts()[0].error.starts_with("éé"), "{:?}", letter.attempts()[0]);
        assert!(!letter.cut().is_empty());
    }
    // The same consumers go on.
    let before = rig.log.now();
    through(&vhost, &rig, &message("next", b"{}".to_vec(), Headers::new())).await;
    assert!(rig.log.now() - before < Duration::from_secs(20));
    assert_undisturbed(&rig);
    rig.shutdown().await;
}
