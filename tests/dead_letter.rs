//! What a dead letter tells, and the consumer that reads letters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use mqguard::broker::{Broker, ConsumeRequest};
use mqguard::{Context, DeadLetter, Guard, Headers, Raw, Reason, State, consumer, dead_letter_consumer};
use serde_json::Value;
use support::{DLQ, Framed, Job, Log, QUEUE, Rig, Step, Trouble, What, millis, seconds};
use tokio::sync::Mutex;

type Logged = State<Log>;

#[consumer(queue = "order.process", retry(max = 3, delay = "5s", factor = 2), dlq = "dlq.order.process.fail")]
async fn base(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// A time as headers tell it.
fn told(time: SystemTime) -> SystemTime {
    humantime::parse_rfc3339(&humantime::format_rfc3339_millis(time).to_string()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_letter_tells_every_attempt_and_what_it_died_of() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    let start = rig.broker.now();
    rig.publish(QUEUE, "A", &[Step::Fail]).await;
    let letter = rig.letter_of("A", DLQ).await;
    let at = |after: u64| told(start + seconds(after));

    let attempts: Vec<_> = letter.attempts().into_iter().map(|it| (it.attempt, it.at, it.kind, it.error)).collect();
    let attempt = |n, after| (n, at(after), "dead_letter::support::Trouble".to_owned(), format!("db-{n} is away"));
    assert_eq!(attempts, [attempt(1, 0), attempt(2, 5), attempt(3, 15), attempt(4, 35)]);
    assert_eq!((letter.first_failure(), letter.died()), (Some(at(0)), Some(at(35))));
    assert_eq!((letter.reason(), letter.runs(), letter.generation()), (Reason::Exhausted, 4, 0));
    let error = letter.error().unwrap();
    assert_eq!((error.kind.as_str(), error.message.as_str()), ("dead_letter::support::Trouble", "db-4 is away"));
    assert_eq!((letter.consumer(), letter.queue()), (Some("dead_letter::base"), Some(QUEUE)));
    assert_eq!((letter.exchange(), letter.routing_key()), (Some(""), Some(QUEUE)));
    assert!(letter.host().is_some_and(|host| !host.is_empty()));
    assert_eq!((letter.message_id(), letter.cut()), (Some("A"), vec![]));
    for name in ["mqguard-first-failure", "mqguard-died"] {
        assert!(letter.message().headers.text(name).unwrap().ends_with('Z'), "{name} is UTC");
    }
}

/// Every letter that arrived, with its time; each reading comes to the next of these steps, and to success once they are used up.
#[derive(Default)]
struct Desk {
    steps: Mutex<Vec<Step>>,
    read: Mutex<Vec<(Duration, DeadLetter<Job>)>>,
}

#[dead_letter_consumer(queue = "dlq.order.process.fail", of = base, timeout = "1s")]
async fn letters(letter: DeadLetter<Job>, State(desk): State<Arc<Desk>>, log: Logged) -> Result<(), Trouble> {
    desk.read.lock().await.push((log.now(), letter));
    let step = desk.steps.lock().await.pop().unwrap_or(Step::Succeed);
    match step {
        Step::Fail => Err(Trouble::Passing(0)),
        Step::FailForGood => Err(Trouble::Final),
        Step::Take(ms) => {
            tokio::time::sleep(millis(ms)).await;
            Ok(())
        }
        Step::Panic => panic!("boom"),
        _ => Ok(()),
    }
}

/// A rig whose letters are read so.
async fn with_desk(steps: &[Step], build: impl FnOnce(Guard) -> Guard) -> (Rig, Arc<Desk>) {
    let desk = Arc::new(Desk { steps: Mutex::new(steps.iter().rev().copied().collect()), read: Mutex::default() });
    let rig = Rig::start(|guard| build(guard.state(Arc::clone(&desk))).consumer::<letters>()).await;
    (rig, desk)
}

/// Waits until a letter was read without a failure; all that were read.
async fn read(rig: &Rig, desk: &Desk) -> Vec<(Duration, DeadLetter<Job>)> {
    rig.log.until(|log| log.seen().iter().any(|seen| seen.consumer == "letters" && seen.what == What::Processed)).await;
    rig.let_an_hour_pass().await;
    desk.read.lock().await.clone()
}

fn whole_seconds(read: &[(Duration, DeadLetter<Job>)]) -> Vec<u64> {
    read.iter().map(|(at, _)| at.as_secs()).collect()
}

/// What a letter tells, as one text.
fn content(letter: &DeadLetter<Job>) -> String {
    let payload = letter.payload().map(|job| job.name.clone());
    format!(
        "{payload:?} {:?} {:?} {:?} {} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        letter.reason(),
        letter.error(),
        letter.attempts(),
        letter.runs(),
        letter.generation(),
        letter.first_failure(),
        letter.died(),
        letter.consumer(),
        letter.queue(),
        letter.exchange(),
        letter.routing_key(),
        letter.host(),
        letter.cut(),
        letter.message().properties,
        users(&letter.message().headers),
    )
}

fn users(headers: &Headers) -> Headers {
    let mut headers = headers.clone();
    headers.retain(|name, _| !name.starts_with("mqguard-") && !name.starts_with("x-"));
    headers
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_consumer_gets_body_payload_reason_chain_attempts_and_times() {
    let (rig, desk) = with_desk(&[], |guard| guard.consumer::<base>()).await;
    let start = rig.broker.now();
    rig.publish_with(QUEUE, "A", &[Step::Fail], |message| message.headers.insert("tenant", "t1")).await;
    let read = read(&rig, &desk).await;
    let [(at, letter)] = &read[..] else { panic!("{read:?}") };
    assert_eq!(*at, seconds(35));
    assert_eq!(letter.payload().unwrap().name, "A");
    assert_eq!(letter.body(), r#"{"name":"A","steps":["Fail"]}"#);
    assert_eq!((letter.reason(), letter.runs(), letter.attempts().len()), (Reason::Exhausted, 4, 4));
    assert_eq!(letter.error().unwrap().message, "db-4 is away");
    assert_eq!((letter.first_failure(), letter.died()), (Some(told(start)), Some(told(start + seconds(35)))));
    assert_eq!(letter.message().headers.text("tenant"), Some("t1"));
    rig.assert_empty_but(&[]);
}

#[tokio::test(start_paused = true)]
async fn a_letter_whose_consumer_fails_comes_again_with_growing_delays_and_is_the_same() {
    let steps: Vec<Step> = [Step::Fail, Step::FailForGood, Step::Panic].into_iter().cycle().take(12).collect();
    let (rig, desk) = with_desk(&steps, |guard| guard.consumer::<base>()).await;
    rig.publish_with(QUEUE, "A", &[Step::FailForGood], |message| {
        message.headers.insert("tenant", "t1");
        message.properties.expiration = Some("1000".into());
        message.properties.priority = Some(3);
    })
    .await;
    let read = read(&rig, &desk).await;
    let waits: Vec<u64> = whole_seconds(&read).windows(2).map(|pair| pair[1] - pair[0]).collect();
    let expected = [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300];
    // Delays are rounded up to two digits.
    assert!(waits.iter().zip(expected).all(|(wait, delay)| (delay..=delay + delay / 10).contains(wait)), "{waits:?}");
    assert_eq!(waits.len(), expected.len());
    for (_, letter) in &read {
        assert_eq!(content(letter), content(&read[0].1));
    }
    assert_eq!((read[0].1.reason(), rig.log.letters()), (Reason::Fatal, 1));
    rig.assert_empty_but(&[]);
    let strays: Vec<_> = rig.broker.queues().into_iter().filter(|queue| queue.starts_with("dlq.dlq")).collect();
    assert!(strays.is_empty(), "{strays:?}");
}

#[tokio::test(start_paused = true)]
async fn a_letter_whose_consumer_takes_too_long_is_kept() {
    let (rig, desk) = with_desk(&[Step::Take(5_000)], |guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::FailForGood]).await;
    assert_eq!(whole_seconds(&read(&rig, &desk).await), [0, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_letter_of_the_brokers_own_is_readable_and_stays_the_same_when_it_is_kept() {
    let (rig, desk) = with_desk(&[Step::Fail, Step::Fail], |guard| guard).await;
    rig.log.attach(Guard::with_broker(rig.broker.clone())).consumer::<base>().declare().await.unwrap();
    rig.publish_with(QUEUE, "A", &[], |message| message.properties.expiration = Some("1000".into())).await;
    let read = read(&rig, &desk).await;
    assert_eq!(whole_seconds(&read), [1, 3, 7]);
    for (_, letter) in &read {
        assert_eq!((letter.reason(), letter.error()), (Reason::Broker("expired".into()), None));
        assert_eq!((letter.queue(), letter.payload().unwrap().name.as_str()), (Some(QUEUE), "A"));
        assert_eq!((letter.exchange(), letter.routing_key()), (Some(""), Some(QUEUE)));
        assert_eq!((letter.runs(), letter.attempts().len(), letter.died()), (0, 0, None));
        assert_eq!(content(letter), content(&read[0].1));
    }
}

#[consumer(queue = "painter", bind(exchange = "colours", kind = "direct", routing_key = "orange"), dlq = "dlq.painter")]
async fn painter(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[dead_letter_consumer(queue = "dlq.painter", of = painter)]
async fn painters_letters(letter: DeadLetter<Value>, log: Logged, cx: Context) -> Result<(), Trouble> {
    log.ran(&format!("{:?} {:?} {}", letter.exchange(), letter.routing_key(), letter.reason()), &cx);
    if log.count() < 3 { Err(Trouble::Final) } else { Ok(()) }
}

#[tokio::test(start_paused = true)]
async fn a_letter_of_the_brokers_own_names_where_the_message_was_published() {
    let rig = Rig::start(|guard| guard.consumer::<painters_letters>()).await;
    rig.log.attach(Guard::with_broker(rig.broker.clone())).consumer::<painter>().declare().await.unwrap();
    let draft = rig.publisher.bytes("{}").message_id("A").with(|message| message.properties.expiration = Some("10".into()));
    draft.to_exchange("colours", "orange").await.unwrap();
    rig.log.until(|log| log.ended("A")).await;
    let names: Vec<_> = rig.log.runs().into_iter().map(|run| run.name).collect();
    assert_eq!(names, vec![r#"Some("colours") Some("orange") broker:expired"#; 3]);
}

/// A message that kills the process each time, as far as the broker can see, before it can be handled.
#[tokio::test(start_paused = true)]
async fn a_message_that_nobody_settles_becomes_a_letter_of_the_brokers_own() {
    let (rig, desk) = with_desk(&[], |guard| guard).await;
    let consumer = rig.log.attach(Guard::with_broker(rig.broker.clone())).consumer::<base>().start().await.unwrap();
    rig.publish(QUEUE, "A", &[Step::Fail]).await;
    rig.log.until(|log| log.count() == 1).await;
    consumer.shutdown().await.unwrap();
    for _ in 0..21 {
        let request = ConsumeRequest { queue: QUEUE.into(), tag: "test".into(), prefetch: 1 };
        let mut subscription = rig.broker.consume(request).await.unwrap();
        let _unsettled = subscription.next().await.unwrap();
        rig.broker.cut_connections();
    }
    let read = read(&rig, &desk).await;
    let [(_, letter)] = &read[..] else { panic!("{} letters", read.len()) };
    assert_eq!((letter.reason(), letter.error()), (Reason::Broker("delivery_limit".into()), None));
    assert_eq!((letter.queue(), letter.payload().unwrap().name.as_str()), (Some(QUEUE), "A"));
    // Waiting for its retry it had expired before, which is not what it died of.
    assert_eq!((letter.exchange(), letter.routing_key()), (Some(""), Some(QUEUE)));
    assert_eq!((rig.log.count(), letter.attempts().len()), (1, 1));
}

/// To the broker a lost connection looks like the death of the process.
#[tokio::test(start_paused = true)]
async fn a_message_that_loses_every_connection_runs_alone_and_becomes_a_letter() {
    let (rig, desk) = with_desk(&[], |guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::Fail, Step::Take(10_000)]).await;
    for runs in 2..=5 {
        rig.log.until(|log| log.count() == runs).await;
        rig.broker.cut_connections();
    }
    let read = read(&rig, &desk).await;
    let [(_, letter)] = &read[..] else { panic!("{} letters", read.len()) };
    assert_eq!((letter.reason(), letter.error().map(|error| error.kind)), (Reason::CrashLoop, Some("crash-loop".into())));
    assert_eq!((letter.queue(), letter.payload().unwrap().name.as_str()), (Some(QUEUE), "A"));
    // The last two waited for the run before to end.
    let times: Vec<u64> = rig.log.times("A").iter().map(Duration::as_secs).collect();
    assert_eq!(times.len(), 5, "{times:?}");
    assert!(times[2] < times[1] + 5 && times[3] >= times[2] + 10 && times[4] >= times[3] + 10, "{times:?}");
    assert_eq!((letter.attempts().len(), letter.message().headers.get("mqguard-crashes")), (1, None));
}

#[tokio::test(start_paused = true)]
async fn a_letter_of_an_undecodable_body_has_the_body_and_no_payload() {
    let (rig, desk) = with_desk(&[Step::Fail], |guard| guard.consumer::<base>()).await;
    rig.publish_raw(QUEUE, "A", b"{ \xFF".as_slice()).await;
    let read = read(&rig, &desk).await;
    assert_eq!(whole_seconds(&read), [0, 2]);
    for (_, letter) in &read {
        assert!(letter.payload().is_err());
        assert_eq!((letter.reason(), letter.runs(), letter.body().as_ref()), (Reason::Undecodable, 0, b"{ \xFF".as_slice()));
        assert_eq!((letter.queue(), letter.first_failure()), (Some(QUEUE), None));
    }
}

#[dead_letter_consumer(queue = "dlq.order.process.fail")]
async fn picky(job: Job, log: Logged, cx: Context) {
    log.ran(&format!("letter of {}", job.name), &cx);
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_its_consumer_cannot_read_is_kept() {
    let rig = Rig::start(|guard| guard.consumer::<base>().consumer::<picky>()).await;
    rig.publish_raw(QUEUE, "bad", "no JSON").await;
    rig.publish(QUEUE, "good", &[Step::FailForGood]).await;
    rig.let_an_hour_pass().await;
    assert_eq!(rig.log.runs_of("letter of good").len(), 1);
    let again: Vec<_> = rig.log.seen_of("bad").into_iter().filter(|what| matches!(what, What::Retried { .. })).collect();
    assert!((15..=22).contains(&again.len()), "it came again {} times in an hour", again.len());
    let waiting: usize = rig.broker.queues().iter().map(|queue| rig.broker.depth(queue)).sum();
    assert_eq!((waiting, rig.log.letters()), (1, 2));
}

#[dead_letter_consumer(queue = "dlq.order.process.fail", of = base)]
async fn any_letter(letter: DeadLetter<Raw>, log: Logged, cx: Context) -> Result<(), Trouble> {
    log.ran(&format!("{} {}", letter.reason(), letter.message().headers.text("big").map_or(0, str::len)), &cx);
    if log.count() < 5 { Err(Trouble::Passing(0)) } else { Ok(()) }
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_fills_its_frame_still_fits_when_it_is_kept() {
    let broker = Framed::new(131_072);
    let rig = Rig::on(broker.clone(), broker.inner.clone(), |guard| guard.consumer::<base>().consumer::<any_letter>()).await;
    for size in [126_000, 126_300, 126_400, 130_500] {
        let name = format!("m-{size}");
        rig.publish_with(QUEUE, &name, &[Step::FailForGood], |message| message.headers.insert("big", "x".repeat(size))).await;
    }
    rig.let_an_hour_pass().await;
    assert_eq!(broker.too_long.load(Ordering::SeqCst), 0);
    rig.assert_empty_but(&[]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_somebody_put_among_the_letters_is_read_as_one_that_tells_nothing() {
    let (rig, desk) = with_desk(&[Step::Fail, Step::Fail], |guard| guard).await;
    rig.publish_raw(DLQ, "stray", "[]").await;
    let read = read(&rig, &desk).await;
    assert_eq!(whole_seconds(&read), [0, 2, 6]);
    for (_, letter) in &read {
        assert_eq!((letter.reason(), letter.error()), (Reason::Other("unknown".into()), None));
        assert_eq!((letter.queue(), letter.consumer(), letter.host()), (None, None, None));
        assert!(letter.payload().is_err());
    }
}

#[dead_letter_consumer(queue = "dlq.elsewhere", of = base)]
async fn misplaced(_letter: DeadLetter<Job>) {}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_consumer_of_another_queue_is_told_at_start() {
    let error = Guard::embedded().consumer::<misplaced>().start().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "consumer `misplaced` (queue `dlq.elsewhere`): the dead letters of `base` go to `dlq.order.process.fail`: \
         write `queue = \"dlq.order.process.fail\"`"
    );
}
