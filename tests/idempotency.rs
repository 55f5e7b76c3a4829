//! Duplicates and leases: a message runs once, however often and wherever it is delivered, unless the process that runs it dies.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;

use harness::{Book, End, Fault, Op, Scene, Trouble, bare, eventually, guarded, ms, s};
use mqguard::idempotency::protocol::State as Stands;
use mqguard::{Context, State, consumer};
use serde_json::Value;
use std::time::Duration;

#[consumer(
    queue = "brief",
    dlq = "dlq.brief",
    retry(max = 1, delay = "1s"),
    timeout = "10s",
    idempotent(store = "redis", ttl = "1m", lease = "2s")
)]
async fn brief(_body: Value, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

fn done(book: &Book) -> bool {
    book.count("processed") == 1
}

#[tokio::test(start_paused = true)]
async fn of_twenty_copies_at_once_one_runs() {
    let scene = Scene::lasting(s(1));
    let _running = scene.start::<guarded>().await;
    for _ in 0..20 {
        scene.publish("work", "m-1").await;
    }
    scene.until("all are settled", |book| book.count("processed") + book.count("duplicate") == 20).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    // Each of the 19 others is looked at after 0.2, 0.6 and 1.4 s: put off three times.
    assert_eq!((book.runs.len(), book.effects(), book.count("busy")), (1, 1, 3 * 19), "{book}");
    assert_eq!(scene.queues.depth("dlq.work"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_running_message_waits_and_is_one_then() {
    let scene = Scene::lasting(s(8));
    let _running = scene.start::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    scene.publish("work", "m-1").await;
    tokio::time::sleep(s(2)).await;
    scene.publish("work", "m-1").await;
    scene.until("all are settled", |book| book.count("processed") + book.count("duplicate") == 3).await;
    let book = scene.journal.book();
    assert_eq!((book.runs.len(), book.count("duplicate")), (1, 2), "{book}");
    assert!(book.count("busy") >= 2, "{book}");
    assert_eq!(scene.store.record("work", "m-1").unwrap().state, Stands::Success);
    scene.at_rest("work").await;
}

#[tokio::test(start_paused = true)]
async fn retries_are_not_mistaken_for_duplicates() {
    let scene = Scene::failing(3);
    let _running = scene.start::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.until("it is done", done).await;
    let book = scene.journal.book();
    assert_eq!(book.began("m-1"), [s(0), s(5), s(15), s(35)], "{book}");
    assert_eq!((book.count("retried"), book.count("duplicate"), book.effects()), (3, 0, 1), "{book}");
}

/// Without a store every delivery runs: it is the store that makes the difference above.
#[tokio::test(start_paused = true)]
async fn without_a_store_every_copy_runs() {
    let scene = Scene::smooth();
    let _running = scene.start::<bare>().await;
    for _ in 0..3 {
        scene.publish("bare", "m-1").await;
    }
    scene.until("all ran", |book| book.count("processed") == 3).await;
    assert_eq!(scene.journal.book().effects(), 3);
}

/// The retry is due at 5 s; the duplicate comes at 2 s, is older than the copy that waits, and is dropped.
#[tokio::test(start_paused = true)]
async fn a_duplicate_while_a_retry_waits_neither_hastens_nor_loses_it() {
    let scene = Scene::failing(2);
    let _running = scene.start::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.until("it failed", |book| book.count("retried") == 1).await;
    tokio::time::sleep(s(2)).await;
    scene.publish("work", "m-1").await;
    scene.until("it failed again", |book| book.count("retried") == 2).await;
    scene.publish("work", "m-1").await;
    scene.until("it is done", done).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    assert_eq!(book.began("m-1"), [s(0), s(5), s(15)], "{book}");
    assert_eq!((book.effects(), book.most_at_once("m-1"), book.count("stale")), (1, 1, 2), "{book}");
    assert_eq!(scene.queues.depth("dlq.work"), 0);
}

/// The duplicate is told "busy" while the first run lasts; that run then fails, and the retry is the only run that follows.
#[tokio::test(start_paused = true)]
async fn a_run_that_fails_after_a_duplicate_was_deferred_is_retried_once() {
    let scene = Scene::new(|run| async move {
        tokio::time::sleep(s(3)).await;
        if run.n == 1 { Err(Trouble::Passing) } else { Ok(()) }
    });
    let _running = scene.start::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    scene.publish("work", "m-1").await;
    scene.until("the duplicate is deferred", |book| book.count("busy") == 1).await;
    scene.until("it is done", done).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    assert_eq!(book.began("m-1"), [s(0), s(8)], "{book}");
    assert_eq!((book.effects(), book.count("retried")), (1, 1), "{book}");
}

/// The first copy goes to the dead letters while another is deferred: the other must not run it back to life.
#[tokio::test(start_paused = true)]
async fn a_dead_message_is_not_revived_by_its_duplicate() {
    let scene = Scene::new(|_| async {
        tokio::time::sleep(s(3)).await;
        Err(Trouble::Fatal)
    });
    let _running = scene.start::<guarded>().await;
    for _ in 0..3 {
        scene.publish("work", "m-1").await;
    }
    scene.until("the duplicates are settled", |book| book.count("duplicate") == 2).await;
    scene.at_rest("work").await;
    assert_eq!(scene.journal.book().runs.len(), 1);
    assert_eq!(scene.deaths("dlq.work"), [("m-1".to_owned(), "fatal".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_success_is_remembered_for_its_ttl_and_no_longer() {
    let scene = Scene::smooth();
    let _running = scene.start::<brief>().await;
    scene.publish("brief", "m-1").await;
    scene.until("it is done", done).await;
    tokio::time::sleep(ms(59_900)).await;
    scene.publish("brief", "m-1").await;
    scene.until("within the ttl it is a duplicate", |book| book.count("duplicate") == 1).await;
    tokio::time::sleep(ms(200)).await;
    scene.publish("brief", "m-1").await;
    scene.until("after the ttl it runs", |book| book.count("processed") == 2).await;
    assert_eq!(scene.journal.book().began("m-1"), [s(0), ms(60_100)]);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_long_run_is_renewed() {
    let scene = Scene::lasting(s(7));
    let neighbour = scene.neighbour(|_| async { Ok(()) });
    let _running = scene.start::<brief>().await;
    scene.publish("brief", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    let _other = neighbour.start::<brief>().await;
    tokio::time::sleep(s(1)).await;
    scene.publish("brief", "m-1").await;
    scene.until("both are settled", |book| book.count("processed") + book.count("duplicate") == 2).await;
    let book = scene.journal.book();
    assert_eq!((book.runs.len(), book.ends()), (1, vec![Some(End::Success)]), "{book}");
    assert!(scene.store.calls(Op::Renew) >= 7, "{} renewals", scene.store.calls(Op::Renew));
    assert_eq!(scene.store.record("brief", "m-1").unwrap().crashes, 0);
}

/// A store that does not answer for a moment costs nothing: the lease is good for longer.
#[tokio::test(start_paused = true)]
async fn a_short_silence_of_the_store_does_not_end_a_run() {
    let scene = Scene::lasting(s(9));
    let _running = scene.start::<brief>().await;
    scene.publish("brief", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    for _ in 0..5 {
        tokio::time::sleep(ms(900)).await;
        scene.store.freeze(true);
        tokio::time::sleep(ms(600)).await;
        scene.store.freeze(false);
    }
    scene.until("it is done", done).await;
    assert_eq!(scene.journal.book().ends(), [Some(End::Success)]);
}

/// Another owner has the record (as after a pause longer than the lease): the run is cancelled, and the delivery is handed back, not
/// acknowledged, since nobody knows whether the other owner has a delivery of its own.
#[tokio::test(start_paused = true)]
async fn a_run_whose_record_was_taken_over_is_cancelled_and_handed_back() {
    let scene = Scene::new(|run| async move {
        if run.n == 1 {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    let _running = scene.start::<brief>().await;
    scene.publish("brief", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    steal(&scene, "brief", "m-1").await;
    scene.until("the run is cancelled", |book| book.ends() == [Some(End::Cancelled)]).await;
    assert!(scene.journal.now() <= s(2));
    scene.until("the delivery is handed back", |book| book.count("busy") == 1).await;
    // The thief vanishes; its lease ends, and the delivery that was handed back runs.
    scene.until("it is done", done).await;
    scene.at_rest("brief").await;
    let book = scene.journal.book();
    assert_eq!((book.runs.len(), book.effects()), (2, 1), "{book}");
}

/// The thief comes while the handler is about to return: its success is not recorded over the thief's claim.
#[tokio::test(start_paused = true)]
async fn the_result_of_a_run_whose_record_was_taken_over_is_refused() {
    let scene = Scene::lasting(ms(500));
    let _running = scene.start::<brief>().await;
    scene.publish("brief", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    steal(&scene, "brief", "m-1").await;
    scene.until("the result is refused", |book| book.count("busy") == 1).await;
    let book = scene.journal.book();
    assert_eq!((book.count("processed"), book.ends()), (0, vec![Some(End::Success)]), "{book}");
    assert_eq!(scene.store.record("brief", "m-1").unwrap().state, Stands::Processing);
    assert!(!scene.is_at_rest("brief"), "acknowledged without a copy");
    // Refused, so it runs once more when the thief is gone: the window that leases leave open.
    scene.until("it is done", done).await;
    assert_eq!(scene.journal.book().runs.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_run_whose_record_was_taken_over_is_refused() {
    for trouble in ["passing", "fatal"] {
        let scene = Scene::new(move |run| async move {
            tokio::time::sleep(ms(500)).await;
            match (run.n, trouble) {
                (1, "passing") => Err(Trouble::Passing),
                (1, _) => Err(Trouble::Fatal),
                _ => Ok(()),
            }
        });
        let _running = scene.start::<brief>().await;
        scene.publish("brief", "m-1").await;
        scene.until("it runs", |book| book.runs.len() == 1).await;
        steal(&scene, "brief", "m-1").await;
        scene.until("it is handed back", |book| book.count("busy") >= 1).await;
        scene.until("it is done", done).await;
        scene.at_rest("brief").await;
        assert_eq!(scene.queues.depth("dlq.brief"), 0, "{trouble}");
        assert_eq!(scene.journal.book().effects(), 1, "{trouble}");
    }
}

/// The store is silent for longer than the lease: the run ends when the lease does, not later, for another worker may have the message.
#[tokio::test(start_paused = true)]
async fn a_run_ends_with_its_lease_when_the_store_is_silent() {
    for offset in [0, 100, 250, 333, 400] {
        let scene = Scene::new(|run| async move {
            if run.n == 1 {
                std::future::pending::<()>().await;
            }
            Ok(())
        });
        let _running = scene.start::<brief>().await;
        tokio::time::sleep(ms(offset)).await;
        scene.publish("brief", "m-1").await;
        scene.until("it runs", |book| book.runs.len() == 1).await;
        scene.store.freeze(true);
        scene.until("it is cancelled", |book| book.ends() == [Some(End::Cancelled)]).await;
        let book = scene.journal.book();
        let lasted = book.runs[0].ended.unwrap().0 - book.runs[0].began;
        assert!((ms(1_300)..=ms(2_010)).contains(&lasted), "{lasted:?} of a lease of 2 s, offset {offset}");
        scene.store.freeze(false);
        scene.until("it is done", done).await;
        assert_eq!(scene.journal.book().effects(), 1);
    }
}

/// The same with a store that says at once that it is away.
#[tokio::test(start_paused = true)]
async fn a_run_ends_with_its_lease_when_the_store_is_away() {
    for offset in [0, 100, 250, 333, 400] {
        let scene = Scene::new(|run| async move {
            if run.n == 1 {
                std::future::pending::<()>().await;
            }
            Ok(())
        });
        let _running = scene.start::<brief>().await;
        tokio::time::sleep(ms(offset)).await;
        scene.publish("brief", "m-1").await;
        scene.until("it runs", |book| book.runs.len() == 1).await;
        scene.store.set_down(true);
        scene.until("it is cancelled", |book| book.ends() == [Some(End::Cancelled)]).await;
        let book = scene.journal.book();
        let lasted = book.runs[0].ended.unwrap().0 - book.runs[0].began;
        assert!((ms(1_300)..=ms(2_010)).contains(&lasted), "{lasted:?} of a lease of 2 s, offset {offset}");
        scene.store.set_down(false);
        scene.until("it is done", done).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_message_runs_again_when_the_lease_ends() {
    let scene = Scene::new(|_| std::future::pending());
    let _dead = scene.start::<brief>().await;
    scene.publish("brief", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    scene.kill();
    let next = scene.neighbour(|_| async { Ok(()) });
    let _running = next.start::<brief>().await;
    scene.until("it is done", done).await;
    let book = scene.journal.book();
    let again = book.began("m-1")[1];
    assert!((s(2)..=s(4)).contains(&again), "the lease of 2 s ended, then it ran at {again:?}\n{book}");
    assert!(book.count("busy") >= 1 && book.runs[1].attempt.retries == 0, "{book}");
    let record = scene.store.record("brief", "m-1").unwrap();
    assert_eq!((record.state, record.crashes), (Stands::Success, 1));
    assert_eq!(scene.queues.depth("dlq.brief"), 0);
}

/// After a success that was recorded, but whose acknowledgement died with the process, the redelivery is a duplicate.
#[tokio::test(start_paused = true)]
async fn a_crash_between_success_and_ack_costs_nothing() {
    let scene = Scene::smooth();
    scene.store.plan(Op::Complete, Fault::AnswerLost, 1);
    let _dead = scene.start::<brief>().await;
    scene.publish("brief", "m-1").await;
    scene.until("it ran", |book| book.effects() == 1).await;
    eventually("the success is recorded", || scene.store.record("brief", "m-1").is_some_and(|r| r.state == Stands::Success))
        .await;
    scene.kill();
    let next = scene.neighbour(|_| async { Ok(()) });
    let _running = next.start::<brief>().await;
    scene.until("it is a duplicate", |book| book.count("duplicate") == 1).await;
    next.at_rest("brief").await;
    assert_eq!(scene.journal.book().runs.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_kills_its_process_again_and_again_becomes_a_letter() {
    let scene = Scene::new(|_| std::future::pending());
    let mut process = scene.clone();
    let mut processes = vec![process.start::<brief>().await];
    scene.publish("brief", "m-1").await;
    for crash in 1..=4 {
        scene.until("it runs", |book| book.runs.len() == crash).await;
        process.kill();
        process = process.neighbour(|_| std::future::pending());
        processes.push(process.start::<brief>().await);
    }
    scene.until("it is a letter", |book| book.count("dead-lettered") == 1).await;
    process.at_rest("brief").await;
    assert_eq!(scene.journal.book().runs.len(), 4);
    assert_eq!(scene.deaths("dlq.brief"), [("m-1".to_owned(), "crash-loop".to_owned())]);
    // A duplicate of it does not run either.
    scene.publish("brief", "m-1").await;
    scene.until("it is a duplicate", |book| book.count("duplicate") == 1).await;
    assert_eq!((scene.journal.book().runs.len(), scene.queues.depth("dlq.brief")), (4, 1));
}

/// The process dies when the message is given up but its letter is not out: the next process sends the letter, with the error of the one
/// run there was, and runs nothing.
#[tokio::test(start_paused = true)]
async fn a_letter_that_is_owed_is_sent_by_whoever_comes_next() {
    let scene = Scene::new(|_| async { Err(Trouble::Fatal) });
    scene.broker.plan("dlq.brief", harness::Publishing::HangNotStored);
    let _dead = scene.start::<brief>().await;
    scene.publish("brief", "m-1").await;
    eventually("it is given up", || scene.store.record("brief", "m-1").is_some_and(|record| record.owes_letter())).await;
    scene.kill();
    let next = scene.neighbour(|_| async { Ok(()) });
    let _running = next.start::<brief>().await;
    scene.until("it is a letter", |book| book.count("dead-lettered") == 1).await;
    next.at_rest("brief").await;
    let book = scene.journal.book();
    assert_eq!((book.runs.len(), book.effects()), (1, 0), "{book}");
    let letters = scene.letters("dlq.brief");
    assert_eq!((letters.len(), letters[0].reason().to_string().as_str()), (1, "fatal"));
    assert_eq!(letters[0].error().unwrap().message, "never");
    assert!(!scene.store.record("brief", "m-1").unwrap().owes_letter());
}

/// Takes a record over as another worker would whose claim came after the lease.
async fn steal(scene: &Scene, queue: &str, id: &str) {
    use mqguard::idempotency::{Claim, ClaimRequest, Fingerprint, Owner, Store};
    let thief = scene.store.beside();
    let request = ClaimRequest {
        identity: harness::identity(queue, "", id),
        turn: scene.store.record(queue, id).unwrap().turn,
        fingerprint: Fingerprint(0),
        owner: Owner::random(),
        lease: s(2),
        ttl: s(60),
        max_crashes: 3,
    };
    // While the owner's renewals are cut off, its lease passes without its knowledge in no time at all.
    lapse(scene, queue, id).await;
    assert!(matches!(thief.claim(&request).await, Ok(Claim::Granted { .. })));
}

/// Ends the lease of a record early.
async fn lapse(scene: &Scene, queue: &str, id: &str) {
    use mqguard::idempotency::{Hold, Settled, Step, Store};
    let hold = Hold {
        identity: harness::identity(queue, "", id),
        owner: scene.store.record(queue, id).unwrap().owner.unwrap(),
        ttl: s(60),
    };
    let ended = scene.store.records().settle(&hold, &Step::Renew { lease: Duration::ZERO }).await;
    assert_eq!(ended, Ok(Settled::Applied));
}
