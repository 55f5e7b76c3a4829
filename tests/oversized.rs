//! Headers and errors that are too long for a frame, and headers that somebody forged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod support;

use std::error::Error;
use std::sync::atomic::Ordering;

use mqguard::{Context, DeadLetter, Extract, Failure, HeaderValue, Headers, Message, Reason, Retry, State, consumer};
use serde_json::Value;
use support::{DLQ, Framed, Job, Log, QUEUE, Rig, Step, Trouble, frame_len, seconds};

type Logged = State<Log>;

#[consumer(queue = "order.process", retry(max = 3, delay = "5s", factor = 2), dlq = "dlq.order.process.fail")]
async fn base(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

const ATTEMPT: &str = "mqguard-attempt";

#[tokio::test(start_paused = true)]
async fn a_count_of_any_integer_type_is_read_and_nonsense_counts_as_none() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    let table: Headers = [("count".to_owned(), 2_i64.into())].into_iter().collect();
    let cases: [(HeaderValue, usize); 19] = [
        (2_i8.into(), 2),
        (2_u8.into(), 2),
        (2_i16.into(), 2),
        (2_u16.into(), 2),
        (2_i32.into(), 2),
        (2_u32.into(), 2),
        (2_i64.into(), 2),
        (3_i64.into(), 1),
        (26_i32.into(), 1),
        (i64::MAX.into(), 1),
        (u32::MAX.into(), 1),
        ((-1_i8).into(), 4),
        (i64::MIN.into(), 4),
        ("2".into(), 4),
        (2.0_f64.into(), 4),
        (true.into(), 4),
        (table.into(), 4),
        (HeaderValue::Array(vec![2_i64.into()]), 4),
        (HeaderValue::Void, 4),
    ];
    for (n, (value, runs)) in cases.into_iter().enumerate() {
        let id = format!("m-{n}");
        rig.publish_with(QUEUE, &id, &[Step::Fail], |message| message.headers.insert(ATTEMPT, value.clone())).await;
        let letter = rig.letter_of(&id, DLQ).await;
        assert_eq!((rig.log.runs_of(&id).len(), letter.reason()), (runs, Reason::Exhausted), "{value:?}");
    }
    rig.let_an_hour_pass().await;
    rig.assert_empty_but(&[(DLQ, 19)]);
}

#[tokio::test(start_paused = true)]
async fn a_count_beyond_the_limit_makes_no_copy_with_one_more() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish_with(QUEUE, "A", &[Step::Fail], |message| message.headers.insert(ATTEMPT, 26_i32)).await;
    let letter = rig.letter_of("A", DLQ).await;
    assert_eq!((rig.log.seconds("A"), letter.reason()), (vec![0], Reason::Exhausted));
    assert_eq!(rig.log.seen_of("A").len(), 1);
    assert!(letter.runs() >= 1);
}

/// What a hostile or broken producer may write under our names.
fn garbage() -> Vec<HeaderValue> {
    let table = |entries: &[(&str, HeaderValue)]| -> HeaderValue {
        let table: Headers = entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        table.into()
    };
    let entry = table(&[("attempt", (-1_i64).into()), ("at", "yesterday".into()), ("kind", 7_i8.into())]);
    let far = table(&[
        ("attempt", i64::MAX.into()),
        ("at", "9999-12-31T23:59:59.999999999Z".into()),
        ("kind", "K".into()),
        ("error", "E".into()),
    ]);
    vec![
        "garbage".into(),
        "".into(),
        "9999-12-31T23:59:59.999999999Z".into(),
        "1970-01-01T00:00:00Z".into(),
        "0001-01-01T00:00:00Z".into(),
        HeaderValue::Text(vec![0xFF, 0xFE].into()),
        HeaderValue::Void,
        i64::MIN.into(),
        HeaderValue::Timestamp(u64::MAX),
        HeaderValue::Array(vec![1_i8.into(), "x".into(), HeaderValue::Void, entry.clone(), far]),
        entry,
    ]
}

#[tokio::test(start_paused = true)]
async fn forged_headers_of_ours_change_neither_the_runs_nor_the_letter() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    let names = [
        "mqguard-attempts",
        "mqguard-first-failure",
        "mqguard-deferrals",
        "mqguard-generation",
        "mqguard-runs",
        "mqguard-reason",
        "mqguard-error",
        "mqguard-error-chain",
        "mqguard-error-kind",
        "mqguard-died",
        "mqguard-queue",
        "mqguard-consumer",
        "mqguard-cut",
        "mqguard-exchange",
        "mqguard-routing-key",
        "mqguard-host",
        "mqguard-original-expiration",
    ];
    for (n, value) in garbage().into_iter().enumerate() {
        for name in names {
            let id = format!("{n} {name}");
            rig.publish_with(QUEUE, &id, &[Step::Fail], |message| message.headers.insert(name, value.clone())).await;
        }
    }
    rig.log.until(|log| log.letters() == names.len() * garbage().len()).await;
    assert_eq!(rig.log.count(), 4 * rig.log.letters());
    for letter in rig.letters(DLQ) {
        let id = letter.message_id().unwrap();
        assert_eq!((letter.reason(), letter.queue()), (Reason::Exhausted, Some(QUEUE)), "{id}");
        assert_eq!(letter.error().unwrap().message, "db-4 is away", "{id}");
        assert_eq!(letter.consumer(), Some("oversized::base"), "{id}");
        assert!(letter.died().is_some() && letter.first_failure().is_some(), "{id}");
        let own = letter.attempts().into_iter().filter(|failed| failed.error.ends_with("is away")).count();
        assert_eq!(own, 4, "{id}: {:?}", letter.attempts());
    }
}

#[consumer(queue = "bounded", retry(max = 3, delay = "10s", within = "1m"), dlq = "dlq.bounded")]
async fn bounded(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// Else a message that asks to be called later could do so until then.
#[tokio::test(start_paused = true)]
async fn a_first_failure_in_the_future_does_not_lengthen_within() {
    let rig = Rig::start(|guard| guard.consumer::<bounded>()).await;
    let future = |message: &mut Message| message.headers.insert("mqguard-first-failure", "9999-01-01T00:00:00Z");
    rig.publish_with("bounded", "A", &[Step::Later(20_000)], future).await;
    rig.letter_of("A", "dlq.bounded").await;
    assert_eq!(rig.log.seconds("A"), [0, 20, 40, 60]);
}

/// Publishes one failing message with these headers; its letter, and how often it ran. No frame may be too long.
async fn with_headers(frame_max: usize, steps: &[Step], headers: Headers) -> (DeadLetter<Value>, usize) {
    let broker = Framed::new(frame_max);
    let rig = Rig::on(broker.clone(), broker.inner.clone(), |guard| guard.consumer::<base>()).await;
    let job = Job { name: "A".into(), steps: steps.into() };
    let draft = rig.publisher.json(&job).unwrap().message_id("A").with(|message| message.headers = headers);
    draft.to_queue(QUEUE).await.unwrap();
    let too_long_at_first = broker.too_long.load(Ordering::SeqCst);
    let letter = rig.letter_of("A", DLQ).await;
    assert_eq!(broker.too_long.load(Ordering::SeqCst), too_long_at_first, "a copy or letter is too long");
    assert!(frame_len(letter.message()) <= frame_max);
    assert!(!letter.error().unwrap().message.is_empty());
    (letter, rig.log.runs_of("A").len())
}

fn one(name: &str, size: usize) -> Headers {
    [(name.to_owned(), "x".repeat(size).into())].into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn headers_of_100_kib_are_retried_and_kept_in_the_letter() {
    let headers = one("big", 100 << 10);
    let (letter, runs) = with_headers(131_072, &[Step::Fail], headers.clone()).await;
    assert_eq!((letter.reason(), runs, letter.attempts().len()), (Reason::Exhausted, 4, 4));
    assert_eq!((letter.message().headers.get("big"), letter.cut()), (headers.get("big"), vec![]));
}

#[tokio::test(start_paused = true)]
async fn five_thousand_headers_are_retried_and_kept_in_the_letter() {
    let headers: Headers = (0..5_000_i32).map(|n| (format!("header-{n}"), n.into())).collect();
    let (letter, runs) = with_headers(131_072, &[Step::Fail], headers).await;
    assert_eq!((letter.reason(), runs, letter.cut()), (Reason::Exhausted, 4, vec![]));
    assert!(letter.message().headers.len() > 5_000);
}

#[tokio::test(start_paused = true)]
async fn headers_that_leave_no_room_are_cut_and_listed() {
    let mut headers = one("big", 100 << 10);
    headers.insert("also", "y".repeat(30 << 10));
    headers.insert("small", "z");
    let (letter, runs) = with_headers(131_072, &[Step::Fail], headers).await;
    assert_eq!((letter.reason(), runs), (Reason::OversizedHeaders, 1));
    assert_eq!(letter.message().headers.text("small"), Some("z"));
    assert_eq!(letter.message().headers.get("big"), None);
    assert_eq!(letter.message().headers.text("also").unwrap().len(), 30 << 10);
    // Of the failure nothing was cut that would have been kept for the same price.
    assert_eq!(letter.error().unwrap().message, "db-1 is away");
    assert!(letter.cut().contains(&"big"), "{:?}", letter.cut());
    for name in letter.cut() {
        assert!(["big", "mqguard-attempts", "mqguard-error-chain"].contains(&name), "{name} is not cut");
    }
}

#[tokio::test(start_paused = true)]
async fn a_header_is_not_listed_as_cut_when_it_is_as_it_was() {
    let (letter, _) = with_headers(131_072, &[Step::FailForGood], one("big", 140 << 10)).await;
    assert_eq!(letter.reason(), Reason::Fatal);
    let error = letter.error().unwrap();
    assert_eq!((error.message.as_str(), error.chain.len()), ("no such order", 0));
    assert!(!letter.cut().contains(&"mqguard-error"), "{:?}", letter.cut());
    assert!(!letter.cut().contains(&"mqguard-error-chain"), "{:?}", letter.cut());
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_headers_too_many_are_cut_in_no_time() {
    let headers: Headers = (0..20_000_i32).map(|n| (format!("header-{n}"), n.into())).collect();
    let started = std::time::Instant::now();
    let (letter, runs) = with_headers(131_072, &[Step::Fail], headers).await;
    assert_eq!((letter.reason(), runs), (Reason::OversizedHeaders, 1));
    assert!(letter.message().headers.len() > 5_000, "{} headers are left", letter.message().headers.len());
    assert!((1..=20).contains(&letter.cut().len()));
    assert!(started.elapsed() < seconds(20), "{:?}", started.elapsed());
}

/// Our own names are no shelter.
#[tokio::test(start_paused = true)]
async fn long_headers_under_our_names_are_cut_too() {
    let names = [
        "mqguard-original-cc",
        "mqguard-first-failure",
        "mqguard-exchange",
        "mqguard-anything",
        "mqguard-attempts",
        "mqguard-cut",
    ];
    for name in names {
        for size in [120 << 10, 127 << 10, 200 << 10] {
            let (letter, _) = with_headers(131_072, &[Step::FailForGood], one(name, size)).await;
            assert_eq!(letter.reason(), Reason::Fatal, "{name} of {size} bytes");
        }
        with_headers(8_192, &[Step::Fail], one(name, 7_000)).await;
    }
}

/// 300,000 bytes of three-byte characters over 200 sources of 2,000 bytes.
#[derive(Debug)]
struct Huge {
    text: String,
    source: Option<Box<Huge>>,
}

impl Huge {
    fn new() -> Self {
        let chain = (0..200).fold(None, |source, _| Some(Box::new(Self { text: "ü".repeat(1000), source })));
        Self { text: "€".repeat(100_000), source: chain }
    }
}

impl std::fmt::Display for Huge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Huge {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

fn fatal(error: &Huge) -> Retry {
    if error.text.len() == 300_000 { Retry::Retryable } else { Retry::Fatal }
}

#[consumer(queue = "huge", retry(max = 2, delay = "5s"), dlq = "dlq.huge", classify = fatal)]
async fn huge(name: String, log: Logged, cx: Context) -> Result<(), Huge> {
    log.ran(&name, &cx);
    Err(Huge::new())
}

#[tokio::test(start_paused = true)]
async fn an_error_longer_than_a_frame_is_cut_on_a_character_and_marked() {
    for frame_max in [131_072, 8_192, 4_096] {
        let broker = Framed::new(frame_max);
        let rig = Rig::on(broker.clone(), broker.inner.clone(), |guard| guard.consumer::<huge>()).await;
        rig.publish_raw("huge", "A", "\"A\"").await;
        let letter = rig.letter_of("A", "dlq.huge").await;
        assert_eq!((letter.reason(), rig.log.seconds("A")), (Reason::Exhausted, vec![0, 5, 10]));
        assert_eq!(broker.too_long.load(Ordering::SeqCst), 0, "frames of {frame_max}");
        rig.let_an_hour_pass().await;
        assert_eq!(rig.log.count(), 3);
        let error = letter.error().unwrap();
        let text = error.message.strip_suffix(" [cut]").expect("the cut is marked");
        assert!(text.chars().all(|c| c == '€') && text.len() >= 200, "{} bytes", text.len());
        assert!(letter.cut().contains(&"mqguard-error") && letter.cut().contains(&"mqguard-error-chain"));
        if frame_max == 131_072 {
            assert!(text.len() >= 4_000);
            assert_eq!(letter.attempts().len(), 3, "all attempts are there, shortened");
            assert!(letter.attempts().iter().all(|failed| failed.error.ends_with(" [cut]")));
            assert!(error.chain.len() >= 16 && error.chain.iter().all(|source| source.starts_with("üü")));
        } else if frame_max == 8_192 {
            assert!(!letter.attempts().is_empty(), "the last attempt is there");
        }
    }
}

/// Fails with a kind and a message of any length.
struct Rambling;

impl Extract for Rambling {
    async fn extract(_cx: &Context) -> Result<Self, Failure> {
        Err(Failure::new(Retry::Retryable, "kind ".repeat(40_000), "message ".repeat(40_000)))
    }
}

#[consumer(queue = "rambling", retry(max = 2, delay = "5s"), dlq = "dlq.rambling")]
async fn rambling(_name: String, _rambling: Rambling) {}

#[tokio::test(start_paused = true)]
async fn the_kind_of_an_error_is_cut_too() {
    for frame_max in [131_072, 8_192] {
        let broker = Framed::new(frame_max);
        let rig = Rig::on(broker.clone(), broker.inner.clone(), |guard| guard.consumer::<rambling>()).await;
        rig.publish_raw("rambling", "A", "\"A\"").await;
        let letter = rig.letter_of("A", "dlq.rambling").await;
        assert_eq!((letter.reason(), letter.runs()), (Reason::Exhausted, 3));
        assert_eq!(broker.too_long.load(Ordering::SeqCst), 0, "frames of {frame_max}");
        assert!(letter.error().unwrap().kind.starts_with("kind kind"));
    }
}
