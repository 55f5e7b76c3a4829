//! What a failed run counts as: errors by their class, panics, timeouts; and what runs before and after the handler.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod support;

use std::error::Error;
use std::io;

use mqguard::{Attempt, Context, Effects, Extract, Failure, Guard, Precheck, Reason, Retry, RetryableError, State, consumer};
use serde::Deserialize;
use support::{DLQ, Job, Log, QUEUE, Rig, Step, Trouble, What, millis, seconds};

type Logged = State<Log>;

/// Reason, runs, kind and message of the letter of `id`.
async fn end(rig: &Rig, queue: &str, id: &str) -> (Reason, u32, String, String) {
    let letter = rig.letter_of(id, &format!("dlq.{queue}")).await;
    let error = letter.error().unwrap();
    (letter.reason(), letter.runs(), error.kind, error.message)
}

#[derive(Debug, thiserror::Error, RetryableError)]
enum RepoError {
    #[error("repo timed out")]
    #[retryable]
    Timeout,
    #[error("repo row is damaged")]
    #[fatal]
    BadRow,
}

#[derive(Debug, thiserror::Error, RetryableError)]
enum OrderError {
    #[error("repo: {0}")]
    #[retryable(inherit)]
    Repo(#[from] RepoError),
    #[error("io")]
    #[retryable(inherit)]
    Io(#[from] io::Error),
    #[error("something")]
    #[retryable(inherit)]
    Any(#[source] Box<dyn Error + Send + Sync>),
    #[error("invalid")]
    #[fatal]
    Invalid,
}

#[derive(Debug, thiserror::Error)]
#[error("wrapped")]
struct Wrapped(#[source] io::Error);

#[consumer(queue = "nested", retry(max = 3, delay = "1s"), dlq = "dlq.nested")]
async fn nested(what: String, log: Logged, cx: Context) -> Result<(), OrderError> {
    log.ran(&what, &cx);
    let io = |kind| io::Error::from(kind);
    Err(match what.as_str() {
        "repo timeout" => RepoError::Timeout.into(),
        "repo bad row" => RepoError::BadRow.into(),
        "io reset" => io(io::ErrorKind::ConnectionReset).into(),
        "io invalid" => io(io::ErrorKind::InvalidData).into(),
        "boxed unknown" => OrderError::Any("no type at all".into()),
        "boxed io invalid" => OrderError::Any(io(io::ErrorKind::InvalidInput).into()),
        "boxed wrapped invalid" => OrderError::Any(Wrapped(io(io::ErrorKind::InvalidInput)).into()),
        "boxed wrapped reset" => OrderError::Any(Wrapped(io(io::ErrorKind::ConnectionReset)).into()),
        _ => OrderError::Invalid,
    })
}

#[tokio::test(start_paused = true)]
async fn the_innermost_known_error_decides_whether_there_are_retries() {
    let rig = Rig::start(|guard| guard.consumer::<nested>()).await;
    let cases = [
        ("invalid", 1),
        ("repo timeout", 4),
        ("repo bad row", 1),
        ("io reset", 4),
        ("io invalid", 1),
        ("boxed unknown", 4),
        ("boxed io invalid", 1),
        ("boxed wrapped invalid", 1),
        ("boxed wrapped reset", 4),
    ];
    for (what, runs) in cases {
        rig.publish_raw("nested", what, format!("\"{what}\"")).await;
        let (reason, told, kind, _) = end(&rig, "nested", what).await;
        let expected = if runs == 1 { Reason::Fatal } else { Reason::Exhausted };
        assert_eq!((rig.log.runs_of(what).len(), reason, told), (runs, expected, u32::try_from(runs).unwrap()), "{what}");
        assert_eq!(kind, "failures::OrderError");
    }
    let letter = rig.letter_of("boxed wrapped reset", "dlq.nested").await;
    assert_eq!(letter.error().unwrap().chain, ["wrapped", "connection reset"]);
}

/// An error that nothing can be derived for.
#[derive(Debug)]
struct Code(u16);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        assert_ne!(self.0, 999, "this error cannot be shown");
        write!(f, "code {}", self.0)
    }
}

impl Error for Code {}

fn by_code(error: &Code) -> Retry {
    match error.0 {
        400 => Retry::Fatal,
        429 => Retry::After(seconds(30)),
        _ => Retry::Retryable,
    }
}

#[consumer(queue = "classified", retry(max = 1, delay = "1s"), dlq = "dlq.classified", classify = by_code)]
async fn classified(code: u16, log: Logged, cx: Context) -> Result<(), Code> {
    log.ran(&code.to_string(), &cx);
    Err(Code(code))
}

#[tokio::test(start_paused = true)]
async fn classify_decides_in_place_of_the_error() {
    let rig = Rig::start(|guard| guard.consumer::<classified>()).await;
    for (code, times) in [("400", vec![0]), ("429", vec![0, 30]), ("500", vec![30, 31])] {
        rig.publish_raw("classified", code, code).await;
        let (_, runs, kind, message) = end(&rig, "classified", code).await;
        assert_eq!((rig.log.seconds(code), kind, message), (times, "failures::Code".into(), format!("code {code}")));
        assert_eq!(runs, u32::try_from(rig.log.runs_of(code).len()).unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_panics_when_shown_is_a_panic() {
    let rig = Rig::start(|guard| guard.consumer::<classified>()).await;
    rig.publish_raw("classified", "999", "999").await;
    let (reason, runs, kind, message) = end(&rig, "classified", "999").await;
    assert_eq!((reason, runs, kind.as_str()), (Reason::Exhausted, 2, "panic"));
    assert!(message.contains("this error cannot be shown"), "{message}");
}

#[consumer(queue = "order.process", retry(max = 3, delay = "5s", factor = 2), dlq = "dlq.order.process.fail")]
async fn base(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn a_business_error_runs_once() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::FailForGood]).await;
    let letter = rig.letter_of("A", DLQ).await;
    rig.let_an_hour_pass().await;
    assert_eq!(rig.log.seconds("A"), [0]);
    assert_eq!((letter.reason(), letter.runs()), (Reason::Fatal, 1));
    rig.assert_empty_but(&[(DLQ, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_business_error_ends_the_retries_that_went_before() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::Fail, Step::FailForGood]).await;
    let letter = rig.letter_of("A", DLQ).await;
    assert_eq!((rig.log.seconds("A"), letter.reason(), letter.runs()), (vec![0, 5], Reason::Fatal, 2));
}

async fn panic_by(how: &str) {
    match how {
        "str" => panic!("boom"),
        "string" => panic!("boom {}", how.len()),
        "other" => std::panic::panic_any(42_u32),
        "joined" => tokio::spawn(async { panic!("boom in a child") }).await.unwrap(),
        "resumed" => {
            let child = tokio::spawn(async { panic!("boom in a child") }).await;
            std::panic::resume_unwind(child.unwrap_err().into_panic());
        }
        _ => {}
    }
}

#[consumer(queue = "panicking", retry(max = 2, delay = "5s"), dlq = "dlq.panicking")]
async fn panicking(how: String, log: Logged, cx: Context) {
    log.ran(&how, &cx);
    panic_by(&how).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_retried_and_the_consumer_lives_on() {
    let rig = Rig::start(|guard| guard.consumer::<panicking>()).await;
    let cases = [
        ("str", "boom"),
        ("string", "boom 6"),
        ("other", "a panic whose payload is not text"),
        ("joined", "boom in a child"),
        ("resumed", "boom in a child"),
    ];
    for (how, text) in cases {
        let started = rig.log.now().as_secs();
        rig.publish_raw("panicking", how, format!("\"{how}\"")).await;
        let (reason, runs, kind, message) = end(&rig, "panicking", how).await;
        assert_eq!((reason, runs, kind.as_str()), (Reason::Exhausted, 3, "panic"));
        assert!(message.contains(text), "{message}");
        assert_eq!(rig.log.seconds(how), [started, started + 5, started + 10]);
    }
    rig.publish_raw("panicking", "fine", "\"fine\"").await;
    rig.log.until(|log| log.ended("fine")).await;
    assert!(rig.is_healthy());
    rig.assert_empty_but(&[("dlq.panicking", 5)]);
}

#[consumer(queue = "slow", retry(max = 2, delay = "5s"), dlq = "dlq.slow", timeout = "2s")]
async fn slow(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn a_run_that_exceeds_its_timeout_is_stopped_and_retried() {
    let rig = Rig::start(|guard| guard.consumer::<slow>()).await;
    rig.publish("slow", "A", &[Step::Take(10_000)]).await;
    let (reason, runs, kind, message) = end(&rig, "slow", "A").await;
    assert_eq!((reason, runs, kind.as_str()), (Reason::Exhausted, 3, "timeout"));
    assert_eq!(message, "the handler did not end within 2s");
    assert_eq!((rig.log.seconds("A"), rig.log.end_of("A")), (vec![0, 7, 14], Some(seconds(16))));
    rig.publish("slow", "B", &[Step::Take(1_999)]).await;
    rig.log.until(|log| log.ended("B")).await;
    assert_eq!(rig.log.seen_of("B"), [What::Processed]);
}

#[consumer(
    queue = "strict",
    retry(max = 2, delay = "5s"),
    dlq = "dlq.strict",
    timeout = "2s",
    on_timeout = "fatal",
    on_panic = "fatal"
)]
async fn strict(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn panics_and_timeouts_run_once_where_they_are_fatal() {
    let rig = Rig::start(|guard| guard.consumer::<strict>()).await;
    for (id, step, kind) in [("A", Step::Panic, "panic"), ("B", Step::Take(10_000), "timeout")] {
        rig.publish("strict", id, &[step]).await;
        let (reason, runs, told, _) = end(&rig, "strict", id).await;
        assert_eq!((reason, runs, told.as_str()), (Reason::Fatal, 1, kind));
    }
    rig.let_an_hour_pass().await;
    assert_eq!(rig.log.count(), 2);
}

#[allow(clippy::ptr_arg, reason = "the message is a String")]
async fn wanted(how: &String, attempt: Attempt) -> Result<Precheck, Trouble> {
    match how.as_str() {
        "retryable once" if attempt.retries == 0 => Err(Trouble::Passing(0)),
        "skip" => Ok(Precheck::Skip),
        "retryable" => Err(Trouble::Passing(0)),
        "fatal" => Err(Trouble::Final),
        "panic" => panic!("boom in the precheck"),
        "hang" => std::future::pending().await,
        _ => Ok(Precheck::Proceed),
    }
}

#[consumer(queue = "checked", retry(max = 2, delay = "5s"), dlq = "dlq.checked", timeout = "3s", precheck = wanted)]
async fn checked(how: String, log: Logged, cx: Context) {
    log.ran(&how, &cx);
}

#[tokio::test(start_paused = true)]
async fn a_precheck_lets_run_skips_or_fails_the_run() {
    let rig = Rig::start(|guard| guard.consumer::<checked>()).await;
    let dead = |retried: usize, reason: &str, kind: &str| (retried, format!("{reason} by {kind}"));
    let cases = [
        ("proceed", (0, "Processed".to_owned())),
        ("skip", (0, "Skipped".to_owned())),
        ("retryable once", (1, "Processed".to_owned())),
        ("retryable", dead(2, "exhausted", "failures::support::Trouble")),
        ("fatal", dead(0, "fatal", "failures::support::Trouble")),
        ("panic", dead(2, "exhausted", "panic")),
        ("hang", dead(2, "exhausted", "timeout")),
    ];
    for (how, expected) in cases {
        rig.publish_raw("checked", how, format!("\"{how}\"")).await;
        rig.log.until(|log| log.ended(how)).await;
        let seen = rig.log.seen_of(how);
        let retried = seen.iter().filter(|what| matches!(what, What::Retried { .. })).count();
        let last = match seen.last().unwrap() {
            What::DeadLettered { reason, error } => format!("{reason} by {}", error.kind),
            other => format!("{other:?}"),
        };
        assert_eq!((retried, last), expected, "{how}");
        assert_eq!(rig.log.runs_of(how).len(), usize::from(expected.1 == "Processed"), "{how}");
    }
    rig.assert_empty_but(&[("dlq.checked", 4)]);
}

/// The header `tenant`.
struct Tenant(String);

impl Extract for Tenant {
    async fn extract(cx: &Context) -> Result<Self, Failure> {
        match cx.message().headers.text("tenant") {
            Some("panic") => panic!("boom in an extractor"),
            Some("away") => Err(Failure::of(Retry::Retryable, Trouble::Passing(7))),
            Some(tenant) => Ok(Self(tenant.to_owned())),
            None => Err(Failure::new(Retry::Fatal, "no-tenant", "the message names no tenant")),
        }
    }
}

#[consumer(queue = "extracted", retry(max = 2, delay = "5s"), dlq = "dlq.extracted")]
async fn extracted(_job: Job, tenant: Tenant, log: Logged, cx: Context) {
    log.ran(&tenant.0, &cx);
}

#[tokio::test(start_paused = true)]
async fn an_extractor_of_the_users_own_gives_a_value_or_fails_the_run() {
    let rig = Rig::start(|guard| guard.consumer::<extracted>()).await;
    let tenant = |tenant: &'static str| move |message: &mut mqguard::Message| message.headers.insert("tenant", tenant);
    rig.publish_with("extracted", "good", &[], tenant("t1")).await;
    rig.log.until(|log| log.ended("good")).await;
    assert_eq!(rig.log.runs_of("t1").len(), 1);
    rig.publish("extracted", "none", &[]).await;
    let told = end(&rig, "extracted", "none").await;
    assert_eq!(told, (Reason::Fatal, 1, "no-tenant".into(), "the message names no tenant".into()));
    rig.publish_with("extracted", "away", &[], tenant("away")).await;
    let (reason, runs, _, message) = end(&rig, "extracted", "away").await;
    assert_eq!((reason, runs, message.as_str()), (Reason::Exhausted, 3, "db-7 is away"));
    rig.publish_with("extracted", "panic", &[], tenant("panic")).await;
    let (reason, runs, kind, _) = end(&rig, "extracted", "panic").await;
    assert_eq!((reason, runs, kind.as_str()), (Reason::Exhausted, 3, "panic"));
    assert_eq!(rig.log.count(), 1);
}

struct Missing;
struct Lacking;

async fn known(_job: &Job, _lacking: State<Lacking>) -> Precheck {
    Precheck::Proceed
}

#[consumer(queue = "stateful", precheck = known)]
async fn stateful(_job: Job, _missing: State<Missing>) {}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_not_registered_is_told_at_start() {
    let error = Guard::embedded().consumer::<stateful>().start().await.unwrap_err();
    let mqguard::Error::Config(mistakes) = error else { panic!("{error}") };
    for (mistake, missing) in mistakes.iter().zip(["Missing", "Lacking"]) {
        let expected = format!(
            "consumer `stateful` (queue `stateful`): nothing of type `failures::{missing}` was registered: \
             call `.state(...)` with one on the guard"
        );
        assert_eq!(mistake.to_string(), expected);
    }
    assert_eq!(mistakes.len(), 2);
}

#[consumer(queue = "effective", retry(max = 2, delay = "5s"), dlq = "dlq.effective")]
async fn effective(job: Job, effects: Effects, attempt: Attempt, log: Logged, cx: Context) -> Result<(), Trouble> {
    for n in 1..=3 {
        let (log, cx, run) = (log.clone(), cx.clone(), attempt.retries + 1);
        let breaks = job.name == "breaks" && n == 2;
        let hangs = job.name == "hangs" && n == 2;
        effects.after_success(async move {
            assert!(!breaks, "boom in an effect");
            if hangs {
                std::future::pending::<()>().await;
            }
            log.ran(&format!("effect {n} of run {run}"), &cx);
        });
    }
    job.carry_out(&log, &cx).await
}

/// Runs and effects, in order.
fn names(log: &Log) -> Vec<String> {
    log.runs().into_iter().map(|run| run.name).collect()
}

#[tokio::test(start_paused = true)]
async fn effects_happen_once_in_order_and_only_after_success() {
    let rig = Rig::start(|guard| guard.consumer::<effective>()).await;
    rig.publish("effective", "A", &[Step::Fail, Step::Panic, Step::Take(100)]).await;
    rig.log.until(|log| log.ended("A")).await;
    assert_eq!(names(&rig.log), ["A", "A", "A", "effect 1 of run 3", "effect 2 of run 3", "effect 3 of run 3"]);
    assert_eq!(rig.log.runs().last().unwrap().at, millis(10_100));
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_hangs_is_dropped_after_as_long_as_a_run_may_take() {
    let rig = Rig::start(|guard| guard.consumer::<effective>()).await;
    rig.publish("effective", "hangs", &[Step::Succeed]).await;
    rig.log.until(|log| log.ended("hangs")).await;
    assert_eq!(names(&rig.log), ["hangs", "effect 1 of run 1", "effect 3 of run 1"]);
    assert_eq!(rig.log.runs().last().unwrap().at, seconds(300));
}

#[tokio::test(start_paused = true)]
async fn effects_of_a_message_that_dies_never_happen() {
    let rig = Rig::start(|guard| guard.consumer::<effective>()).await;
    rig.publish("effective", "A", &[Step::Fail]).await;
    end(&rig, "effective", "A").await;
    rig.let_an_hour_pass().await;
    assert_eq!(names(&rig.log), ["A", "A", "A"]);
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_panics_hurts_neither_the_others_nor_the_message() {
    let rig = Rig::start(|guard| guard.consumer::<effective>()).await;
    rig.publish("effective", "breaks", &[Step::Succeed]).await;
    rig.log.until(|log| log.ended("breaks")).await;
    rig.let_an_hour_pass().await;
    assert_eq!(names(&rig.log), ["breaks", "effect 1 of run 1", "effect 3 of run 1"]);
    assert_eq!(rig.log.seen_of("breaks"), [What::Processed]);
    rig.assert_empty_but(&[]);
}

/// A payload whose reading panics.
#[derive(Debug)]
struct Explosive;

impl<'de> Deserialize<'de> for Explosive {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        assert_ne!(text, "boom", "boom while decoding");
        Ok(Self)
    }
}

#[consumer(queue = "explosive", retry(max = 2, delay = "5s"), dlq = "dlq.explosive")]
async fn explosive(_message: Explosive, log: Logged, cx: Context) {
    log.ran("explosive", &cx);
}

/// What a body did once it does again: no retries.
#[tokio::test(start_paused = true)]
async fn a_body_whose_decoding_panics_is_undecodable() {
    let rig = Rig::start(|guard| guard.consumer::<explosive>()).await;
    rig.publish_raw("explosive", "A", "\"boom\"").await;
    let (reason, runs, kind, message) = end(&rig, "explosive", "A").await;
    assert_eq!((reason, runs, kind.as_str()), (Reason::Undecodable, 0, "panic"));
    assert!(message.contains("boom while decoding"), "{message}");
    rig.publish_raw("explosive", "B", "\"fine\"").await;
    rig.log.until(|log| log.ended("B")).await;
    assert_eq!(rig.log.count(), 1);
    rig.assert_empty_but(&[("dlq.explosive", 1)]);
}

fn explosive_key(text: &str) -> Option<String> {
    assert_ne!(text, "boom", "boom in the key");
    Some(text.to_owned())
}

#[consumer(queue = "keyed", idempotent(store = "memory", key = explosive_key))]
async fn keyed(text: String, log: Logged, cx: Context) {
    log.ran(&text, &cx);
}

#[tokio::test(start_paused = true)]
async fn a_body_whose_business_key_panics_is_undecodable() {
    let rig = Rig::start(|guard| guard.consumer::<keyed>()).await;
    rig.publish_raw("keyed", "A", "\"boom\"").await;
    let (reason, runs, kind, _) = end(&rig, "keyed", "A").await;
    assert_eq!((reason, runs, kind.as_str()), (Reason::Undecodable, 0, "panic"));
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_changes_nothing() {
    let rig = Rig::start(|guard| guard.observe(|_| panic!("boom in an observer")).consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::Fail, Step::Succeed]).await;
    rig.publish(QUEUE, "B", &[Step::FailForGood]).await;
    rig.log.until(|log| log.ended("A") && log.ended("B")).await;
    rig.let_an_hour_pass().await;
    assert_eq!((rig.log.seconds("A"), rig.log.seconds("B")), (vec![0, 5], vec![0]));
    rig.assert_empty_but(&[(DLQ, 1)]);
}
