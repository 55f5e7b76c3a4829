//! `on_store_down = "run"`: while the store is away messages run without a claim. Each is told, none waits, and every outcome ends its
//! delivery; a store that refuses, or keeps something that is not a record, is no reason to run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod harness;

use harness::{Book, End, Fault, Logs, Op, Scene, Trouble, eventually, identity, ms, s};
use mqguard::idempotency::protocol::State as Stands;
use mqguard::idempotency::{Claim, ClaimRequest, Fingerprint, Hold, Owner, Settled, Step, Store, Turn};
use mqguard::{Context, Running, State, Status, consumer};
use serde_json::{Value, json};

/// As `guarded`, and prefers duplicates to waiting.
#[consumer(
    queue = "work",
    retry(max = 3, delay = "5s", factor = 2),
    dlq = "dlq.work",
    idempotent(store = "redis", lease = "10s", on_store_down = "run"),
    prefetch = 20
)]
async fn eager(_body: Value, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

fn status(running: &Running) -> Status {
    running.health().consumers[0].1.clone()
}

fn is_degraded(running: &Running) -> bool {
    running.health().is_degraded()
}

fn is_guarded(running: &Running) -> bool {
    matches!(status(running), Status::Consuming)
}

fn done(book: &Book) -> bool {
    book.count("processed") == 1
}

/// How the store is away.
#[derive(Debug, Clone, Copy)]
enum Away {
    /// It cannot be reached.
    Down,
    /// It takes questions and never answers.
    Frozen,
}

impl Away {
    fn set(self, scene: &Scene, away: bool) {
        match self {
            Self::Down => scene.store.set_down(away),
            Self::Frozen => scene.store.freeze(away),
        }
    }

    /// What it may cost a message to find that out.
    const fn patience(self) -> std::time::Duration {
        match self {
            Self::Down => ms(100),
            Self::Frozen => ms(2_200),
        }
    }
}

const WAYS: [Away; 2] = [Away::Down, Away::Frozen];

#[tokio::test(start_paused = true)]
async fn messages_run_at_once_and_are_acknowledged() {
    for away in WAYS {
        let logs = Logs::capture(tracing::Level::WARN);
        let scene = Scene::smooth();
        let running = scene.start::<eager>().await;
        away.set(&scene, true);
        for n in 0..2_000 {
            scene.publish("work", &format!("m-{n}")).await;
        }
        let began = scene.journal.now();
        scene.until("all are done", |book| book.count("processed") == 2_000).await;
        assert!(scene.journal.now() - began <= away.patience(), "{away:?} {:?}", scene.journal.now() - began);
        scene.at_rest("work").await;
        let book = scene.journal.book();
        assert_eq!((book.runs.len(), book.count("unguarded"), book.count("returned")), (2_000, 2_000, 0), "{away:?}");
        assert!(is_degraded(&running) && running.health().is_healthy(), "{:?}", running.health());
        let said = status(&running).to_string();
        assert!(said.contains("store `redis`") && said.contains("without protection"), "{said}");
        // Each claim is asked for by those that were out when it went away, and then by none.
        assert!(scene.store.calls(Op::Claim) <= 40, "{} claims", scene.store.calls(Op::Claim));
        let lines = logs.with("runs without protection");
        assert!((1..=3).contains(&lines.len()) && lines[0].contains("m-0") && lines[0].contains("work"), "{lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_is_used_again_when_it_is_back() {
    for away in WAYS {
        let logs = Logs::capture(tracing::Level::INFO);
        let scene = Scene::smooth();
        let running = scene.start::<eager>().await;
        away.set(&scene, true);
        scene.publish("work", "during").await;
        scene.until("it is done", done).await;
        tokio::time::sleep(s(60)).await;
        assert!(scene.store.calls(Op::Ping) <= 60, "{} pings in a minute", scene.store.calls(Op::Ping));
        away.set(&scene, false);
        eventually("it is guarded again", || is_guarded(&running)).await;
        assert!(scene.journal.now() < s(70), "{:?}", scene.journal.now());
        for _ in 0..2 {
            scene.publish("work", "after").await;
        }
        scene.until("it is done", |book| book.count_of("after", "processed") == 1).await;
        scene.until("the other is a duplicate", |book| book.count_of("after", "duplicate") == 1).await;
        assert_eq!(scene.journal.book().count_of("after", "unguarded"), 0);
        assert_eq!(scene.store.record("work", "after").unwrap().state, Stands::Success);
        let back = logs.with("the store is back; 1 messages ran, or ended, without it");
        assert_eq!((back.len(), logs.with("consuming without protection").len()), (1, 1), "{}", logs.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_does_not_wait_for_the_store() {
    for away in WAYS {
        let scene = Scene::smooth();
        away.set(&scene, true);
        let running = tokio::time::timeout(s(3), scene.start::<eager>()).await.unwrap();
        assert!(is_degraded(&running));
        scene.publish("work", "m-1").await;
        scene.until("it is done", done).await;
        away.set(&scene, false);
        eventually("it is guarded", || is_guarded(&running)).await;
    }
}

/// Each end of a message that runs without a claim, with the store away throughout.
#[tokio::test(start_paused = true)]
async fn every_outcome_ends_the_delivery() {
    for away in WAYS {
        let scene = Scene::new(|run| async move {
            match (run.id.as_str(), run.n) {
                ("retried", 1) | ("exhausted", _) => Err(Trouble::Passing),
                ("fatal", _) => Err(Trouble::Fatal),
                ("panics", 1) => panic!("as told"),
                _ => Ok(()),
            }
        });
        let running = scene.start::<eager>().await;
        away.set(&scene, true);
        for id in ["fine", "retried", "exhausted", "fatal", "panics"] {
            scene.publish("work", id).await;
        }
        scene.until("all have ended", |book| book.count("processed") == 3 && book.count("dead-lettered") == 2).await;
        scene.at_rest("work").await;
        let book = scene.journal.book();
        let runs = ["fine", "retried", "exhausted", "fatal", "panics"].map(|id| book.runs_of(id));
        assert_eq!((runs, book.count("unguarded")), ([1, 2, 4, 1, 2], 10), "{away:?}\n{book}");
        let mut deaths = scene.deaths("dlq.work");
        deaths.sort();
        let expected = [("exhausted", "exhausted"), ("fatal", "fatal")].map(|(id, why)| (id.to_owned(), why.to_owned()));
        assert_eq!(deaths, expected, "{away:?}\n{book}");
        let waits: Vec<_> = book.began("exhausted").windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(waits.iter().zip([5, 10, 20]).all(|(waited, delay)| *waited >= s(delay)), "{waits:?}");
        assert!(is_degraded(&running));
        assert_eq!(scene.store.records().len(), 0);
    }
}

/// The answer to the claim is lost: it stands in the record, in our name, and is settled when the store answers by then.
#[tokio::test(start_paused = true)]
async fn a_claim_that_was_made_after_all_is_settled() {
    for op in [Op::Complete, Op::Release, Op::Condemn] {
        let scene = ending_with(op, ms(500));
        let running = scene.start::<eager>().await;
        scene.store.plan(Op::Claim, Fault::AnswerLost, 2);
        scene.publish("work", "m-1").await;
        scene.until("it ends", ended).await;
        scene.at_rest("work").await;
        assert!(is_guarded(&running));
        let (book, record) = (scene.journal.book(), scene.store.record("work", "m-1").unwrap());
        let expected = if op == Op::Condemn { Stands::Failed } else { Stands::Success };
        assert_eq!((record.state, record.owes_letter(), record.crashes), (expected, false, 0), "{op:?}\n{book}");
        let runs = if op == Op::Release { 2 } else { 1 };
        assert_eq!((book.runs.len(), book.count("unguarded"), book.count("busy")), (runs, 1, 0), "{op:?}\n{book}");
    }
}

/// The same, and the store is away until long after: the claim ends with its lease, and counts as a crash.
#[tokio::test(start_paused = true)]
async fn a_claim_that_was_made_and_not_settled_ends_with_its_lease() {
    let scene = Scene::failing(1);
    let running = scene.start::<eager>().await;
    scene.store.plan(Op::Claim, Fault::AnswerLost, 2);
    scene.store.plan(Op::Ping, Fault::RequestLost, 3);
    scene.publish("work", "m-1").await;
    scene.until("it failed", |book| book.count("retried") == 1).await;
    assert_eq!(scene.store.record("work", "m-1").unwrap().state, Stands::Processing);
    scene.until("it is done", done).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    assert!(book.count("busy") > 0 && book.runs[1].began >= s(10), "{book}");
    let record = scene.store.record("work", "m-1").unwrap();
    assert_eq!((record.state, record.crashes, book.runs.len()), (Stands::Success, 1, 2), "{book}");
    assert!(is_guarded(&running));
}

/// A scene in which a message comes to an end that is recorded with this step, after this long.
fn ending_with(op: Op, time: std::time::Duration) -> Scene {
    Scene::new(move |run| async move {
        tokio::time::sleep(time).await;
        match op {
            Op::Release if run.n == 1 => Err(Trouble::Passing),
            Op::Condemn | Op::Lettered => Err(Trouble::Fatal),
            _ => Ok(()),
        }
    })
}

fn ended(book: &Book) -> bool {
    book.count("processed") + book.count("dead-lettered") == 1
}

/// The store goes away between claim and settlement, and stays away: the delivery ends all the same, once and soon.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_is_acknowledged() {
    for away in WAYS {
        for op in [Op::Complete, Op::Release, Op::Condemn] {
            let scene = ending_with(op, ms(100));
            let running = scene.start::<eager>().await;
            scene.publish("work", "m-1").await;
            scene.until("it runs", |book| book.runs.len() == 1).await;
            away.set(&scene, true);
            scene.until("it ends", ended).await;
            scene.at_rest("work").await;
            let book = scene.journal.book();
            let case = format!("{away:?} {op:?}\n{book}");
            let (runs, letters) = match op {
                Op::Complete => (1, 0),
                Op::Release => (2, 0),
                _ => (1, 1),
            };
            // The retry runs without a claim too.
            assert_eq!((book.runs.len(), book.count("unguarded")), (runs, runs), "{case}");
            assert_eq!((scene.queues.depth("dlq.work"), book.count("returned"), book.count("busy")), (letters, 0, 0), "{case}");
            assert!(book.events.last().unwrap().at <= if op == Op::Release { s(14) } else { ms(7_500) }, "{case}");
            assert!(is_degraded(&running), "{case}");
            assert_eq!(scene.store.record("work", "m-1").unwrap().state, Stands::Processing, "{case}");
            away.set(&scene, false);
            eventually("it is guarded again", || is_guarded(&running)).await;
            tokio::time::sleep(s(120)).await;
            assert_eq!(scene.journal.book().runs.len(), runs, "it rests\n{case}");
        }
    }
}

/// An outage that is over soon leaves a record of everything.
#[tokio::test(start_paused = true)]
async fn what_can_be_recorded_a_little_later_is() {
    for op in [Op::Complete, Op::Release, Op::Condemn, Op::Lettered] {
        for fault in [Fault::RequestLost, Fault::AnswerLost] {
            let scene = ending_with(op, ms(100));
            let running = scene.start::<eager>().await;
            scene.store.plan(op, fault, 3);
            scene.publish("work", "m-1").await;
            scene.until("it ends", ended).await;
            scene.at_rest("work").await;
            let (book, record) = (scene.journal.book(), scene.store.record("work", "m-1").unwrap());
            let success = matches!(op, Op::Complete | Op::Release);
            assert_eq!(record.state, if success { Stands::Success } else { Stands::Failed }, "{op:?} {fault:?}\n{book}");
            assert_eq!((record.owes_letter(), book.count("unguarded")), (false, 0), "{op:?} {fault:?}\n{book}");
            assert!(is_guarded(&running));
        }
    }
}

/// The letter is out, that cannot be recorded: a duplicate makes another one and does not run.
#[tokio::test(start_paused = true)]
async fn a_letter_that_cannot_be_recorded_is_acknowledged() {
    let scene = Scene::new(|_| async { Err(Trouble::Fatal) });
    let running = scene.start::<eager>().await;
    scene.store.plan(Op::Lettered, Fault::RequestLost, 60);
    scene.publish("work", "m-1").await;
    scene.until("it ends", ended).await;
    scene.at_rest("work").await;
    assert!(scene.journal.now() <= ms(5_200), "{:?}", scene.journal.now());
    assert_eq!((scene.queues.depth("dlq.work"), scene.journal.book().count("unguarded")), (1, 1));
    eventually("it is guarded again", || is_guarded(&running)).await;
    tokio::time::sleep(s(20)).await;
    assert_eq!((scene.queues.depth("dlq.work"), scene.journal.book().runs.len()), (1, 1));
}

/// A run is not cancelled for a lease that cannot be renewed, and is recorded when nobody took the message over.
#[tokio::test(start_paused = true)]
async fn a_run_outlives_its_lease_while_the_store_is_away() {
    for away in WAYS {
        for back_at in [s(25), s(120)] {
            let scene = Scene::lasting(s(60));
            let running = scene.start::<eager>().await;
            scene.publish("work", "m-1").await;
            scene.until("it runs", |book| book.runs.len() == 1).await;
            away.set(&scene, true);
            tokio::time::sleep(back_at).await;
            away.set(&scene, false);
            scene.until("it is done", done).await;
            scene.at_rest("work").await;
            let book = scene.journal.book();
            assert_eq!(book.ends(), [Some(End::Success)], "{away:?} {back_at:?}\n{book}");
            let is_recorded = scene.store.record("work", "m-1").unwrap().state == Stands::Success;
            assert_eq!(
                (is_recorded, book.count("unguarded")),
                (back_at < s(60), usize::from(back_at > s(60))),
                "{away:?}\n{book}"
            );
            assert!(scene.store.calls(Op::Renew) <= 50, "{} renewals", scene.store.calls(Op::Renew));
            drop(running);
        }
    }
}

/// Another worker took over while the first could not reach the store: that is told by the store, and ends the first run.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_taken_over_is_cancelled_when_the_store_says_so() {
    let scene = Scene::lasting(s(60));
    let running = scene.start::<eager>().await;
    scene.publish("work", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    scene.store.set_down(true);
    tokio::time::sleep(s(15)).await;
    let (other, claim) = (scene.store.beside(), claim("m-1"));
    assert_eq!(other.claim(&claim).await, Ok(Claim::Granted { crashes: 1 }));
    scene.store.set_down(false);
    scene.until("the first is cancelled", |book| book.ends() == [Some(End::Cancelled)]).await;
    assert!(scene.journal.now() < s(20), "{:?}", scene.journal.now());
    let hold = Hold { identity: claim.identity.clone(), owner: claim.owner, ttl: claim.ttl };
    assert_eq!(other.settle(&hold, &Step::Complete).await, Ok(Settled::Applied));
    scene.until("its message is a duplicate", |book| book.count("duplicate") == 1).await;
    scene.at_rest("work").await;
    assert_eq!(scene.journal.book().runs.len(), 1);
    drop(running);
}

/// A claim of another process.
fn claim(id: &str) -> ClaimRequest {
    ClaimRequest {
        identity: identity("work", "", id),
        turn: Turn::default(),
        fingerprint: Fingerprint::of(&serde_json::to_vec(&json!({ "order_id": "A-1", "amount": 10 })).unwrap()),
        owner: Owner::random(),
        lease: s(10),
        ttl: s(3600),
        max_crashes: 3,
    }
}

/// A refusal, and a record that is none, are as without the key: nothing runs unguarded for them.
#[tokio::test(start_paused = true)]
async fn what_does_not_pass_by_itself_is_no_reason_to_run() {
    let scene = Scene::smooth();
    let running = scene.start::<eager>().await;
    scene.store.plan(Op::Claim, Fault::Refused, 1);
    scene.store.plan(Op::Ping, Fault::Refused, 5);
    scene.publish("work", "m-1").await;
    eventually("it pauses", || matches!(status(&running), Status::Paused { .. })).await;
    assert_eq!(scene.journal.book().runs.len(), 0);
    scene.until("it is done", done).await;
    assert_eq!(scene.journal.book().count("unguarded"), 0);

    scene.store.damage("m-2");
    scene.publish("work", "m-2").await;
    scene.until("it is a letter", |book| book.count("dead-lettered") == 1).await;
    assert_eq!((scene.journal.book().runs_of("m-2"), scene.journal.book().count("unguarded")), (0, 0));

    let scene = Scene::smooth();
    scene.store.plan(Op::Ping, Fault::Refused, 1);
    let error = scene.guard().consumer::<eager>().start().await.unwrap_err();
    assert!(error.to_string().contains("WRONGPASS"), "{error}");
}

/// The store comes back, and does not let us in any more: nothing runs from then on.
#[tokio::test(start_paused = true)]
async fn an_outage_that_ends_in_a_refusal_pauses() {
    let scene = Scene::smooth();
    let running = scene.start::<eager>().await;
    scene.store.set_down(true);
    scene.publish("work", "m-1").await;
    scene.until("it is done", done).await;
    scene.store.plan(Op::Ping, Fault::Refused, 4);
    scene.store.set_down(false);
    eventually("it pauses", || matches!(status(&running), Status::Paused { .. })).await;
    scene.publish("work", "m-2").await;
    eventually("it is guarded again", || is_guarded(&running)).await;
    scene.until("it is done", |book| book.count("processed") == 2).await;
    let book = scene.journal.book();
    assert_eq!((book.count_of("m-2", "unguarded"), book.runs_of("m-2")), (0, 1), "{book}");
}

/// A store that answers pings and nothing else, as a full server does: it is tried again now and then, not over and over.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_back_only_for_pings_does_not_make_it_spin() {
    let logs = Logs::capture(tracing::Level::WARN);
    let scene = Scene::smooth();
    let running = scene.start::<eager>().await;
    scene.store.refuse_writes(true);
    for n in 0..600 {
        scene.publish("work", &format!("m-{n}")).await;
        tokio::time::sleep(ms(100)).await;
    }
    let pings = scene.store.calls(Op::Ping);
    assert!(pings <= 40, "{pings} pings in a minute");
    assert!(logs.text().lines().count() <= 150, "{}", logs.text());
    let book = scene.journal.book();
    assert_eq!((book.runs.len(), book.count("unguarded"), scene.broker.subscriptions()), (600, 600, 1));
    scene.store.refuse_writes(false);
    eventually("it is guarded again", || is_guarded(&running)).await;
}

/// The broker goes away too: what is without a store stays so over a new subscription, or finds it back.
#[tokio::test(start_paused = true)]
async fn an_outage_lasts_over_a_lost_subscription() {
    for back in [false, true] {
        let scene = Scene::smooth();
        let running = scene.start::<eager>().await;
        scene.store.set_down(true);
        scene.publish("work", "m-1").await;
        scene.until("it is done", done).await;
        scene.store.set_down(!back);
        scene.queues.cut_connections();
        eventually("it consumes again", || scene.broker.subscriptions() == 2 && running.health().is_healthy()).await;
        scene.publish("work", "m-2").await;
        scene.until("it is done", |book| book.count("processed") == 2).await;
        assert_eq!((is_degraded(&running), scene.journal.book().count("unguarded")), (!back, if back { 1 } else { 2 }));
    }
}

/// A shutdown is not held up by a store that is away.
#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_in_its_time() {
    for away in WAYS {
        let scene = Scene::lasting(s(3));
        let running = scene.start::<eager>().await;
        scene.publish("work", "claimed").await;
        scene.until("it runs", |book| book.runs.len() == 1).await;
        away.set(&scene, true);
        scene.publish("work", "unguarded").await;
        scene.until("both run", |book| book.runs.len() == 2).await;
        tokio::time::timeout(s(20), running.shutdown()).await.unwrap().unwrap();
        assert_eq!((scene.journal.book().count("processed"), scene.queues.depth("work")), (2, 0), "{}", scene.journal.book());
    }
}
