//! Every crash of a consumer, one at a time and in pairs; and wrong consumers, stores and brokers, which have to be found out.

#![cfg(feature = "testing")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mqguard::testing::{CrashTest, Fault, Invariant, Report, StepKind};
use mqguard::{Context, DeadLetter, Guard, Publisher, RetryableError, State, consumer, dead_letter_consumer};
use serde::{Deserialize, Serialize};

mod crash {
    pub(crate) mod processes;
    pub(crate) mod unguarded;
    pub(crate) mod wrong;
}

use crash::wrong::{EagerBroker, ForgetfulStore, LosingBroker, SharingStore};

/// What the handler does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Act {
    Succeed,
    /// Succeeds after 12 s, longer than a lease.
    Last,
    /// Fails in its first two attempts.
    FailTwice,
    Fail,
    Refuse,
    /// Fails for good in its first run; succeeds if it is run again.
    RefuseOnce,
    /// Fails for good until it is replayed, and once more then; succeeds after that.
    RefuseUntilReplayed,
    Panic,
}

#[derive(Debug, thiserror::Error, RetryableError)]
enum Trouble {
    #[error("try again")]
    #[retryable]
    Passing,
    #[error("never")]
    #[fatal]
    Fatal,
}

/// Where the effects go: how often each message was charged, and refused.
#[derive(Debug, Clone, Default)]
struct Bank(Arc<Mutex<Books>>);

#[derive(Debug, Default)]
struct Books {
    charges: HashMap<String, u32>,
    has_refused: bool,
}

impl Bank {
    fn charge(&self, id: &str) {
        *self.0.lock().unwrap().charges.entry(id.to_owned()).or_default() += 1;
    }

    fn clear(&self) {
        *self.0.lock().unwrap() = Books::default();
    }

    fn charges(&self, id: &str) -> u32 {
        self.0.lock().unwrap().charges.get(id).copied().unwrap_or(0)
    }

    fn refuses_first(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().unwrap().has_refused, true)
    }

    async fn play(&self, act: Act, cx: &Context) -> Result<(), Trouble> {
        match act {
            Act::Succeed => {}
            Act::Last => tokio::time::sleep(Duration::from_secs(12)).await,
            Act::FailTwice if cx.attempt().retries >= 2 => {}
            Act::FailTwice | Act::Fail => return Err(Trouble::Passing),
            Act::RefuseOnce if !self.refuses_first() => {}
            Act::Refuse | Act::RefuseOnce => return Err(Trouble::Fatal),
            Act::RefuseUntilReplayed if cx.attempt().generation == 0 => return Err(Trouble::Fatal),
            Act::RefuseUntilReplayed if cx.attempt().retries == 0 => return Err(Trouble::Passing),
            Act::RefuseUntilReplayed => {}
            // Without the message of the panic hook, some thousand times.
            Act::Panic => std::panic::resume_unwind(Box::new("out of order")),
        }
        self.charge(cx.message_id().unwrap_or_default());
        Ok(())
    }
}

#[consumer(
    queue = "charge",
    retry(max = 3, delay = "5s", factor = 2),
    dlq = "dlq.charge",
    idempotent(store = "redis", lease = "10s")
)]
async fn charge(act: Act, cx: Context, bank: State<Bank>) -> Result<(), Trouble> {
    bank.play(act, &cx).await
}

/// The same without a store.
#[consumer(queue = "bare", retry(max = 3, delay = "5s", factor = 2), dlq = "dlq.bare")]
async fn bare(act: Act, cx: Context, bank: State<Bank>) -> Result<(), Trouble> {
    bank.play(act, &cx).await
}

/// Fails at first, so that letters are put off and come again.
#[dead_letter_consumer(queue = "dlq.charge", of = charge)]
async fn file(_letter: DeadLetter<Act>, cx: Context) -> Result<(), Trouble> {
    if cx.attempt().retries == 0 { Err(Trouble::Passing) } else { Ok(()) }
}

/// Moves letters back, as an operator does once the cause is mended.
#[dead_letter_consumer(queue = "dlq.charge", of = charge)]
async fn replay(letter: DeadLetter<Act>, publisher: State<Publisher>) -> Result<(), Trouble> {
    let draft = publisher.bytes("").with(|message| *message = letter.message().clone());
    draft.to_queue("charge").await.map(drop).map_err(|_| Trouble::Passing)
}

async fn send(publisher: Publisher, queue: &str, messages: &[(&str, Act)]) {
    for (id, act) in messages {
        publisher.json(act).unwrap().message_id(*id).to_queue(queue).await.unwrap();
    }
}

/// The crash test of these messages to `charge`.
fn test<'a>(bank: &'a Bank, messages: &'a [(&'a str, Act)]) -> CrashTest<'a> {
    CrashTest::new(|guard: Guard| guard.consumer::<charge>().state(bank.clone()))
        .publish(move |publisher| send(publisher, "charge", messages))
        .reset(|| bank.clear())
}

/// How many pairs of faults are run: all of them when `MQGUARD_TEST_ALL_PAIRS` is set, which takes some minutes.
fn pairs(usually: usize) -> usize {
    if std::env::var_os("MQGUARD_TEST_ALL_PAIRS").is_some() { usize::MAX } else { usually }
}

#[track_caller]
fn assert_thorough(report: &Report, singles: usize, pairs: usize) {
    println!("{report}");
    report.assert_clean();
    assert!(report.singles >= singles && report.pairs >= pairs && report.unreached == 0, "{report}");
}

/// Each of these messages ends in a success.
fn all_charged(bank: &Bank, ids: &[&str]) -> Result<(), String> {
    match ids.iter().find(|id| bank.charges(id) == 0) {
        Some(id) => Err(format!("{id} was not charged")),
        None => Ok(()),
    }
}

fn none_charged(bank: &Bank) -> Result<(), String> {
    if bank.0.lock().unwrap().charges.is_empty() { Ok(()) } else { Err(format!("charged: {bank:?}")) }
}

#[tokio::test(start_paused = true)]
async fn success_with_a_duplicate() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Succeed), ("m-1", Act::Succeed)];
    let report = test(&bank, &messages).check(|| all_charged(&bank, &["m-1"])).most_pairs(pairs(1200)).run().await;
    assert_thorough(&report, 40, 1200);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_while_the_first_runs_long() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Last), ("m-1", Act::Last)];
    let report = test(&bank, &messages).check(|| all_charged(&bank, &["m-1"])).most_pairs(pairs(600)).run().await;
    assert_thorough(&report, 150, 600);
}

#[tokio::test(start_paused = true)]
async fn two_failures_and_a_success() {
    let bank = Bank::default();
    let messages = [("m-1", Act::FailTwice)];
    let report = test(&bank, &messages).check(|| all_charged(&bank, &["m-1"])).most_pairs(pairs(1200)).run().await;
    assert_thorough(&report, 80, 1200);
}

#[tokio::test(start_paused = true)]
async fn exhausted() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Fail)];
    let report = test(&bank, &messages).check(|| none_charged(&bank)).most_pairs(pairs(0)).run().await;
    assert_thorough(&report, 100, 0);
}

#[tokio::test(start_paused = true)]
async fn fatal() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Refuse), ("m-1", Act::Refuse)];
    let report = test(&bank, &messages).check(|| none_charged(&bank)).most_pairs(pairs(600)).run().await;
    assert_thorough(&report, 50, 600);
}

/// What was given up is not run again, even if it would succeed: the letter and a success exclude each other.
#[tokio::test(start_paused = true)]
async fn fatal_and_then_not() {
    let bank = Bank::default();
    let report = test(&bank, &[("m-1", Act::RefuseOnce)]).most_pairs(pairs(600)).run().await;
    assert_thorough(&report, 45, 600);
}

#[tokio::test(start_paused = true)]
async fn a_panic() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Panic)];
    let report = test(&bank, &messages).check(|| none_charged(&bank)).most_pairs(pairs(0)).run().await;
    assert_thorough(&report, 100, 0);
}

#[tokio::test(start_paused = true)]
async fn undecodable() {
    let bank = Bank::default();
    let report = CrashTest::new(|guard: Guard| guard.consumer::<charge>().state(bank.clone()))
        .publish(async |publisher: Publisher| {
            publisher.bytes("?").message_id("m-1").to_queue("charge").await.unwrap();
        })
        .check(|| none_charged(&bank))
        .most_pairs(pairs(0))
        .run()
        .await;
    assert_thorough(&report, 40, 0);
}

#[tokio::test(start_paused = true)]
async fn several_consumers_and_a_late_publish() {
    let bank = Bank::default();
    let report = CrashTest::new(|guard: Guard| guard.consumer::<charge>().consumer::<bare>().state(bank.clone()))
        .publish(async |publisher: Publisher| {
            send(publisher.clone(), "charge", &[("m-1", Act::FailTwice), ("m-2", Act::Refuse)]).await;
            tokio::time::sleep(Duration::from_secs(7)).await;
            send(publisher, "bare", &[("m-3", Act::FailTwice), ("m-4", Act::Fail)]).await;
        })
        .check(|| all_charged(&bank, &["m-1", "m-3"]))
        .most_pairs(pairs(0))
        .run()
        .await;
    assert_thorough(&report, 150, 0);
}

/// A crash loop may end any of them in a dead letter, so the invariants alone are asked for.
#[tokio::test(start_paused = true)]
async fn chains_of_faults() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Last), ("m-1", Act::Last), ("m-2", Act::FailTwice), ("m-3", Act::RefuseOnce)];
    let report = test(&bank, &messages).chains(80).run().await;
    assert_thorough(&report, 200, 0);
    assert!(report.chained >= 350, "{report}");
}

#[tokio::test(start_paused = true)]
async fn letters_that_are_consumed() {
    let bank = Bank::default();
    let report = CrashTest::new(|guard: Guard| guard.consumer::<charge>().consumer::<file>().state(bank.clone()))
        .publish(|publisher| send(publisher, "charge", &[("m-1", Act::Refuse)]))
        .check(|| none_charged(&bank))
        .most_pairs(pairs(0))
        .run()
        .await;
    assert_thorough(&report, 60, 0);
}

/// Wherever it is cut off, a letter may be moved back twice.
#[tokio::test(start_paused = true)]
async fn a_replay() {
    let bank = Bank::default();
    let report = CrashTest::new(|guard: Guard| {
        let publisher = guard.publisher();
        guard.consumer::<charge>().consumer::<replay>().state(bank.clone()).state(publisher)
    })
    .publish(|publisher| send(publisher, "charge", &[("m-1", Act::RefuseUntilReplayed)]))
    .reset(|| bank.clear())
    .check(|| all_charged(&bank, &["m-1"]))
    .most_pairs(pairs(600))
    .run()
    .await;
    assert_thorough(&report, 100, 600);
}

#[tokio::test(start_paused = true)]
async fn without_a_store() {
    let bank = Bank::default();
    let report = CrashTest::new(|guard: Guard| guard.consumer::<bare>().state(bank.clone()))
        .publish(|publisher| send(publisher, "bare", &[("m-1", Act::FailTwice)]))
        .check(|| all_charged(&bank, &["m-1"]))
        .pairs(true)
        .run()
        .await;
    assert_thorough(&report, 30, 800);
    assert_eq!(report.pairs, report.possible_pairs, "all of them");
}

/// The truth of at least once: a crash between the effect and its record makes the effect happen twice. It is told, with the step.
#[tokio::test(start_paused = true)]
async fn an_effect_that_must_not_happen_twice_is_told() {
    let bank = Bank::default();
    let once = || match bank.charges("m-1") {
        1 => Ok(()),
        n => Err(format!("m-1 was charged {n} times")),
    };
    let report = test(&bank, &[("m-1", Act::Succeed)]).check(once).run().await;
    let text = report.to_string();
    assert!(report.violations().iter().all(|violation| violation.invariant == Invariant::Check), "{text}");
    let steps = report.violations().iter().flat_map(|violation| violation.faulty_steps());
    let mut faults: Vec<_> = steps.map(|line| (line.step.unwrap().1, line.fault.unwrap())).collect();
    faults.dedup();
    assert!(faults.contains(&(StepKind::Complete, Fault::CrashBefore)), "{text}");
    assert!(!faults.contains(&(StepKind::Complete, Fault::CrashAfter)), "the success is recorded by then: {text}");
    assert!(text.contains("CrashBefore at step"), "{text}");
    assert!(text.contains("complete of charge/m-1"), "{text}");
    assert!(report.singles > 30, "{text}");

    // The one schedule again.
    let found = &report.violations()[0];
    let again = test(&bank, &[("m-1", Act::Succeed)]).check(once).only(found.schedule.0.iter().copied()).run().await;
    assert_eq!((again.schedules(), again.violations().len()), (1, 1), "{again}");
    assert_eq!(again.violations()[0].to_string(), found.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_wrong_handler_fails_the_clean_run() {
    let bank = Bank::default();
    let report = test(&bank, &[("m-1", Act::Refuse)]).check(|| all_charged(&bank, &["m-1"])).run().await;
    assert_eq!((report.schedules(), report.violations().len()), (0, 1), "{report}");
    assert!(report.violations()[0].schedule.0.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_test_that_publishes_nothing_is_no_test() {
    let bank = Bank::default();
    let report = test(&bank, &[]).run().await;
    assert!(report.to_string().contains("nothing was published"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_mistake_in_the_configuration_is_told() {
    let report = CrashTest::new(|guard: Guard| guard.consumer::<charge>()).run().await;
    assert_eq!(report.violations()[0].invariant, Invariant::Running, "{report}");
}

fn kinds(report: &Report) -> Vec<Invariant> {
    let mut kinds: Vec<_> = report.violations().iter().map(|violation| violation.invariant).collect();
    kinds.dedup();
    kinds
}

#[tokio::test(start_paused = true)]
async fn a_store_that_forgets_is_found_out() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Succeed), ("m-1", Act::Succeed)];
    let report = test(&bank, &messages).store(ForgetfulStore::default).run().await;
    assert!(kinds(&report).contains(&Invariant::NoRunAfterSuccess), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_lets_two_own_a_message_is_found_out() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Last), ("m-1", Act::Last)];
    let report = test(&bank, &messages).store(SharingStore::default).run().await;
    assert!(kinds(&report).contains(&Invariant::OneOwner), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_loses_what_it_confirmed_is_found_out() {
    let bank = Bank::default();
    let report = test(&bank, &[("m-1", Act::FailTwice)]).broker(LosingBroker).run().await;
    assert_eq!(kinds(&report)[0], Invariant::NothingLost, "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_before_its_delay_is_found_out() {
    let bank = Bank::default();
    let report = test(&bank, &[("m-1", Act::FailTwice)]).broker(EagerBroker).run().await;
    assert!(kinds(&report).contains(&Invariant::NoEarlyRetry), "{report}");
}

/// Comes again after an hour, more often than within a day.
#[consumer(queue = "endless", dlq = "dlq.endless", retry(max = 100, delay = "1h"), idempotent(store = "redis", ttl = "30d"))]
async fn endless(_act: Act) -> Result<(), Trouble> {
    Err(Trouble::Passing)
}

#[tokio::test(start_paused = true)]
async fn what_does_not_come_to_rest_is_told_with_what_is_left() {
    let report = CrashTest::new(|guard: Guard| guard.consumer::<endless>())
        .publish(|publisher| send(publisher, "endless", &[("m-1", Act::Fail)]))
        .run()
        .await;
    assert_eq!(kinds(&report), [Invariant::AtRest], "{report}");
    assert!(report.to_string().contains("after 1day endless.retry.1h has 1 ready, 0 unsettled"), "{report}");
}
