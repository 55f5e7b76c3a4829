//! When a failed message runs again, how often, and what it holds up meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod support;

use std::time::Duration;

use mqguard::{Context, Reason, State, consumer};
use support::{DLQ, Job, Log, QUEUE, Rig, Step, Trouble, What, millis, seconds};

type Logged = State<Log>;

#[consumer(queue = "order.process", retry(max = 3, delay = "5s", factor = 2), dlq = "dlq.order.process.fail")]
async fn base(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn a_failing_message_runs_at_0_5_15_and_35_seconds_and_is_a_letter_at_once() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::Fail]).await;
    rig.letter_of("A", DLQ).await;
    assert_eq!(rig.log.seconds("A"), [0, 5, 15, 35]);
    assert_eq!(rig.log.end_of("A"), Some(seconds(35)));
    rig.let_an_hour_pass().await;
    assert_eq!(rig.log.count(), 4);
    rig.assert_empty_but(&[(DLQ, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_succeeds_ends_the_retries() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::Fail, Step::Fail, Step::Succeed]).await;
    rig.log.until(|log| log.ended("A")).await;
    rig.let_an_hour_pass().await;
    assert_eq!(rig.log.seconds("A"), [0, 5, 15]);
    let attempts: Vec<_> = rig.log.runs_of("A").iter().map(|run| (run.attempt.retries, run.attempt.is_last())).collect();
    assert_eq!(attempts, [(0, false), (1, false), (2, false)]);
    rig.assert_empty_but(&[]);
}

#[tokio::test(start_paused = true)]
async fn observers_are_told_of_each_retry_and_of_the_letter() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::Fail]).await;
    rig.letter_of("A", DLQ).await;
    let told: Vec<String> = rig
        .log
        .seen_of("A")
        .into_iter()
        .map(|what| match what {
            What::Retried { delay, counted, error } => format!("again in {delay:?}, counted {counted}: {error}"),
            What::DeadLettered { reason, error } => format!("{reason}: {error}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            "again in 5s, counted true: db-1 is away",
            "again in 10s, counted true: db-2 is away",
            "again in 20s, counted true: db-3 is away",
            "exhausted: db-4 is away",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_without_an_id_is_counted_too() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish_with(QUEUE, "A", &[Step::Fail], |message| message.properties.message_id = None).await;
    rig.log.until(|log| log.letters() == 1).await;
    rig.let_an_hour_pass().await;
    assert_eq!(rig.log.seconds("A"), [0, 5, 15, 35]);
    assert_eq!(rig.broker.messages(DLQ)[0].properties.message_id, None);
    rig.assert_empty_but(&[(DLQ, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_does_not_hold_up_a_short_one() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::Fail]).await;
    rig.log.until(|log| log.runs_of("A").len() == 3).await;
    tokio::time::sleep(millis(100)).await;
    rig.publish(QUEUE, "B", &[Step::Fail, Step::Succeed]).await;
    rig.log.until(|log| log.ended("A") && log.ended("B")).await;
    assert_eq!(rig.log.times("B"), [millis(15_100), millis(20_100)]);
    assert_eq!(rig.log.seconds("A"), [0, 5, 15, 35]);
}

#[consumer(queue = "capped", retry(max = 4, delay = "5s", factor = 3, max_delay = "20s"), dlq = "dlq.capped")]
async fn capped(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_longer_than_max_delay() {
    let rig = Rig::start(|guard| guard.consumer::<capped>()).await;
    rig.publish("capped", "A", &[Step::Fail]).await;
    rig.letter_of("A", "dlq.capped").await;
    assert_eq!(rig.log.seconds("A"), [0, 5, 20, 40, 60]);
}

#[consumer(queue = "scheduled", retry(max = 4, schedule = ["1s", "10s", "1m"]), dlq = "dlq.scheduled")]
async fn scheduled(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn a_schedule_is_followed_and_its_last_delay_repeats() {
    let rig = Rig::start(|guard| guard.consumer::<scheduled>()).await;
    rig.publish("scheduled", "A", &[Step::Fail]).await;
    rig.letter_of("A", "dlq.scheduled").await;
    assert_eq!(rig.log.seconds("A"), [0, 1, 11, 71, 131]);
}

#[consumer(queue = "steady", retry(max = 12, delay = "200ms"), dlq = "dlq.steady")]
async fn steady(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// A broker drops messages that go round between queues without a rejection; ours are published anew.
#[tokio::test(start_paused = true)]
async fn twelve_rounds_through_the_same_hold_queue_lose_nothing() {
    let rig = Rig::start(|guard| guard.consumer::<steady>()).await;
    rig.publish("steady", "A", &[Step::Fail]).await;
    let letter = rig.letter_of("A", "dlq.steady").await;
    assert_eq!(letter.runs(), 13);
    // A copy carries the last ten attempts.
    let attempts: Vec<_> = letter.attempts().iter().map(|failed| failed.attempt).collect();
    assert_eq!((attempts, letter.cut()), ((3..=13).collect(), vec!["mqguard-attempts"]));
    let expected: Vec<Duration> = (0..13).map(|n| millis(200 * n)).collect();
    assert_eq!(rig.log.times("A"), expected);
    rig.assert_empty_but(&[("dlq.steady", 1)]);
}

#[consumer(queue = "at.once", retry(max = 3, delay = "0s"), dlq = "dlq.at.once")]
async fn at_once(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn a_delay_of_zero_means_max_plus_one_runs_without_a_wait() {
    let rig = Rig::start(|guard| guard.consumer::<at_once>()).await;
    assert_eq!(rig.broker.queues(), ["at.once", "at.once.quarantine", "dlq.at.once"]);
    rig.publish("at.once", "A", &[Step::Fail]).await;
    rig.letter_of("A", "dlq.at.once").await;
    rig.let_an_hour_pass().await;
    assert_eq!(rig.log.seconds("A"), [0, 0, 0, 0]);
    rig.assert_empty_but(&[("dlq.at.once", 1)]);
}

#[consumer(queue = "spread", retry(max = 2, delay = "5s", factor = 2, jitter = 0.2), dlq = "dlq.spread", prefetch = 600)]
async fn spread(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn jitter_only_lengthens_and_its_queues_do_not_grow_with_the_messages() {
    let rig = Rig::start(|guard| guard.consumer::<spread>()).await;
    let before = rig.broker.queues();
    for n in 0..500 {
        rig.publish("spread", &format!("m-{n}"), &[Step::Fail]).await;
    }
    rig.log.until(|log| log.letters() == 500).await;
    // 5 s to 6 s and 10 s to 12 s at two significant digits: 11 and 3 values, whatever the hour.
    let on_demand = rig.broker.queues().len() - before.len();
    assert!((4..=14).contains(&on_demand), "{on_demand} queues: {:?}", rig.broker.queues());
    for n in 0..500 {
        let times = rig.log.times(&format!("m-{n}"));
        let [first, second, third] = times[..] else { panic!("{times:?}") };
        for (wait, delay) in [(second - first, 5.0), (third - second, 10.0)] {
            let wait = wait.as_secs_f64();
            assert!(wait >= delay && wait <= delay * 1.2 * 1.1, "waited {wait} s instead of {delay} s");
        }
    }
    let distinct: std::collections::BTreeSet<_> = (0..500).map(|n| rig.log.times(&format!("m-{n}"))[1]).collect();
    assert!(distinct.len() >= 9, "jitter spreads over {} values only", distinct.len());
    tokio::time::sleep(seconds(3 * 3600)).await;
    assert_eq!(rig.broker.queues(), before, "idle on-demand queues are gone");
}

#[consumer(queue = "bounded", retry(max = 100, delay = "10s", within = "1m"), dlq = "dlq.bounded")]
async fn bounded(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn no_retry_is_due_later_than_within_after_the_first_failure() {
    let rig = Rig::start(|guard| guard.consumer::<bounded>()).await;
    tokio::time::sleep(seconds(100)).await;
    rig.publish("bounded", "A", &[Step::Fail]).await;
    let letter = rig.letter_of("A", "dlq.bounded").await;
    assert_eq!(rig.log.seconds("A"), [100, 110, 120, 130, 140, 150, 160]);
    assert_eq!(letter.reason(), Reason::Exhausted);
    assert_eq!(rig.log.end_of("A"), Some(seconds(160)));
}

#[tokio::test(start_paused = true)]
async fn an_uncounted_retry_spends_no_attempt_and_ends_with_within() {
    let rig = Rig::start(|guard| guard.consumer::<bounded>()).await;
    rig.publish("bounded", "A", &[Step::Later(25_000)]).await;
    let letter = rig.letter_of("A", "dlq.bounded").await;
    assert_eq!(rig.log.seconds("A"), [0, 25, 50]);
    let attempts: Vec<_> = rig.log.runs_of("A").iter().map(|run| (run.attempt.retries, run.attempt.deferrals)).collect();
    assert_eq!(attempts, [(0, 0), (0, 1), (0, 2)]);
    assert_eq!((letter.reason(), letter.runs(), letter.attempts().len()), (Reason::Exhausted, 3, 3));
}

/// An error whose time has come already asks for a wait of zero: that must not become a busy loop until `within` is over.
#[tokio::test(start_paused = true)]
async fn an_uncounted_retry_without_a_wait_is_no_busy_loop() {
    let rig = Rig::start(|guard| guard.consumer::<bounded>()).await;
    rig.publish("bounded", "A", &[Step::Later(0)]).await;
    rig.letter_of("A", "dlq.bounded").await;
    let runs = rig.log.count();
    assert!((2..=601).contains(&runs), "{runs} runs in a minute");
}

#[tokio::test(start_paused = true)]
async fn an_uncounted_retry_without_within_is_counted() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::Later(60_000)]).await;
    rig.letter_of("A", DLQ).await;
    assert_eq!(rig.log.seconds("A"), [0, 60, 120, 180]);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_names_its_delay_is_counted() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::After(7_000), Step::Fail, Step::After(0), Step::Fail]).await;
    let letter = rig.letter_of("A", DLQ).await;
    // The second failure is followed by the second delay of the policy.
    assert_eq!(rig.log.seconds("A"), [0, 7, 17, 17]);
    assert_eq!(letter.runs(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_delay_off_the_grid_is_rounded_up() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    rig.publish(QUEUE, "A", &[Step::After(1_234), Step::Succeed]).await;
    rig.log.until(|log| log.ended("A")).await;
    assert_eq!(rig.log.times("A"), [millis(0), millis(1_300)]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_a_month_is_kept_and_a_longer_one_shortened_to_it() {
    let rig = Rig::start(|guard| guard.consumer::<base>()).await;
    let (month, year) = (30 * 24 * 3600, 365 * 24 * 3600);
    rig.publish(QUEUE, "A", &[Step::After(year * 1000), Step::Succeed]).await;
    rig.log.until(|log| log.ended("A")).await;
    let second = rig.log.seconds("A")[1];
    assert!((month..=month + month / 10).contains(&second), "second run after {second} s");
}

/// An on-demand hold queue expires; a steady stream of retries must never find it gone, or lose what waits in it.
#[tokio::test(start_paused = true)]
async fn on_demand_queues_lose_nothing_while_they_are_in_use() {
    let rig = Rig::start(|guard| guard.consumer::<patient>()).await;
    rig.publish("patient", "A", &[Step::Later(15_000)]).await;
    rig.letter_of("A", "dlq.patient").await;
    let expected: Vec<u64> = (0..=7 * 3600 / 15).map(|n| n * 15).collect();
    assert_eq!(rig.log.seconds("A"), expected);
    tokio::time::sleep(seconds(3 * 3600)).await;
    assert_eq!(rig.broker.queues(), ["dlq.patient", "patient", "patient.quarantine", "patient.retry.1s"]);
}

#[consumer(queue = "patient", retry(max = 1, delay = "1s", within = "7h"), dlq = "dlq.patient", queue_type = "classic")]
async fn patient(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(queue = "crowd", retry(max = 3, delay = "50ms"), dlq = "dlq.crowd", concurrency = 8)]
async fn crowd(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn a_thousand_failing_messages_make_four_thousand_runs_and_a_thousand_letters() {
    let rig = Rig::start(|guard| guard.consumer::<crowd>()).await;
    let id = |n: usize| format!("m-{n}");
    for n in 0..1000 {
        rig.publish("crowd", &id(n), &[Step::Fail]).await;
    }
    rig.log.until(|log| log.letters() == 1000).await;
    rig.let_an_hour_pass().await;
    assert_eq!((rig.log.count(), rig.log.letters()), (4000, 1000));
    let mut letters: Vec<_> = rig.letters("dlq.crowd").iter().map(|letter| letter.message_id().unwrap().to_owned()).collect();
    letters.sort();
    let mut ids: Vec<_> = (0..1000).map(id).collect();
    ids.sort();
    assert_eq!(letters, ids);
    rig.assert_empty_but(&[("dlq.crowd", 1000)]);
}

#[consumer(queue = "narrow", retry(max = 3, delay = "20s"), dlq = "dlq.narrow", prefetch = 1)]
async fn narrow(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn waiting_messages_hold_no_prefetch_slot() {
    let rig = Rig::start(|guard| guard.consumer::<narrow>()).await;
    for n in 0..10 {
        rig.publish("narrow", &format!("bad-{n}"), &[Step::Fail]).await;
    }
    for n in 0..100 {
        rig.publish("narrow", &format!("good-{n}"), &[Step::Take(1)]).await;
    }
    rig.log.until(|log| log.processed() == 100).await;
    assert_eq!(rig.log.now(), millis(100));
    assert_eq!(rig.log.letters(), 0);
    rig.log.until(|log| log.letters() == 10).await;
    assert_eq!(rig.log.now(), seconds(60));
}

#[consumer(queue = "wide", prefetch = 50, concurrency = 4)]
async fn wide(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_reached_and_not_passed() {
    let rig = Rig::start(|guard| guard.consumer::<wide>()).await;
    for n in 0..200 {
        rig.publish("wide", &format!("m-{n}"), &[Step::Take(50)]).await;
    }
    rig.log.until(|log| log.processed() == 200).await;
    assert_eq!(rig.log.now(), millis(2_500));
    let starts: Vec<_> = rig.log.runs().iter().map(|run| run.at).collect();
    let expected: Vec<_> = (0..200).map(|n| millis(n / 4 * 50)).collect();
    assert_eq!(starts, expected);
}

#[consumer(queue = "single", concurrency = 1)]
async fn single(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn a_concurrency_of_one_keeps_the_order() {
    let rig = Rig::start(|guard| guard.consumer::<single>()).await;
    let names: Vec<_> = (0..20).map(|n| format!("m-{n}")).collect();
    for name in &names {
        rig.publish("single", name, &[Step::Take(7)]).await;
    }
    rig.log.until(|log| log.processed() == 20).await;
    let runs = rig.log.runs();
    assert_eq!(runs.iter().map(|run| run.name.clone()).collect::<Vec<_>>(), names);
    assert_eq!(runs.iter().map(|run| run.at).collect::<Vec<_>>(), (0..20).map(|n| millis(7 * n)).collect::<Vec<_>>());
}

#[consumer(queue = "plain")]
async fn plain(job: Job, log: Logged, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[tokio::test(start_paused = true)]
async fn without_retry_and_dlq_a_failure_runs_once_and_is_a_letter_in_the_default_queue() {
    let rig = Rig::start(|guard| guard.consumer::<plain>()).await;
    for (id, step) in [("A", Step::Fail), ("B", Step::FailForGood), ("C", Step::After(1_000)), ("D", Step::Later(1_000))] {
        rig.publish("plain", id, &[step]).await;
        let letter = rig.letter_of(id, "dlq.plain").await;
        let reason = if id == "B" { Reason::Fatal } else { Reason::Exhausted };
        assert_eq!((letter.reason(), letter.runs()), (reason, 1), "{id}");
    }
    rig.let_an_hour_pass().await;
    assert_eq!(rig.log.count(), 4);
    assert_eq!(rig.log.seconds("D"), [0]);
    rig.assert_empty_but(&[("dlq.plain", 4)]);
}
