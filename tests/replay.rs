//! A dead letter that is moved back to its queue, as operators do once the cause is mended, begins a new life.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;

use harness::{Scene, Trouble, bare, guarded, s};
use mqguard::idempotency::{Claim, ClaimRequest, Fingerprint, Hold, Owner, Settled, Step, Store, Turn};
use mqguard::{Consumer, DeadLetter, Reason};
use serde_json::Value;

/// Moves the only letter back, unchanged, as the management page and shovels do. The letter itself stays.
async fn move_back(scene: &Scene, letter: &DeadLetter<Value>, queue: &str) {
    let draft = scene.publisher().bytes("").with(|message| *message = letter.message().clone());
    draft.to_queue(queue).await.unwrap();
}

/// Fails for good in its first life, then once retryably, then succeeds.
fn mended() -> Scene {
    Scene::new(|run| async move {
        match (run.attempt.generation, run.attempt.retries) {
            (0, _) => Err(Trouble::Fatal),
            (_, 0) => Err(Trouble::Passing),
            _ => Ok(()),
        }
    })
}

async fn lives_again<C: Consumer>(queue: &str) {
    let scene = mended();
    let _running = scene.start::<C>().await;
    let dlq = format!("dlq.{queue}");
    scene.publish(queue, "m-1").await;
    scene.until("it is dead", |book| book.count("dead-lettered") == 1).await;
    let letter = scene.letters(&dlq).remove(0);
    move_back(&scene, &letter, queue).await;
    scene.until("it is done", |book| book.count("processed") == 1).await;
    let book = scene.journal.book();
    let runs: Vec<_> = book.runs.iter().map(|run| (run.attempt.generation, run.attempt.retries)).collect();
    assert_eq!(runs, [(0, 0), (1, 0), (1, 1)], "{book}");
    assert_eq!(book.began("m-1")[2], book.began("m-1")[1] + s(5), "the policy begins anew");
    assert_eq!(scene.letters(&dlq).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_is_moved_back_runs_again() {
    lives_again::<guarded>("work").await;
}

#[tokio::test(start_paused = true)]
async fn so_it_does_without_a_store() {
    lives_again::<bare>("bare").await;
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_is_moved_back_twice_runs_once() {
    let scene = mended();
    let _running = scene.start::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.until("it is dead", |book| book.count("dead-lettered") == 1).await;
    let letter = scene.letters("dlq.work").remove(0);
    move_back(&scene, &letter, "work").await;
    move_back(&scene, &letter, "work").await;
    scene.until("it is done", |book| book.count("processed") == 1).await;
    scene.at_rest("work").await;
    move_back(&scene, &letter, "work").await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    assert_eq!((book.effects(), book.count("processed"), book.runs.len()), (1, 1, 3), "{book}");
}

/// A worker dies between the failure of a replay and its letter, and a late copy of the first life is the first to come by.
#[tokio::test(start_paused = true)]
async fn a_letter_that_is_owed_is_of_the_life_that_failed_whichever_copy_finds_it() {
    let scene = Scene::smooth();
    let _running = scene.start::<guarded>().await;
    let owner = Owner::random();
    let request = ClaimRequest {
        identity: harness::identity("work", "", "m-1"),
        turn: Turn { generation: 1, step: 0 },
        fingerprint: Fingerprint(0),
        owner,
        lease: s(10),
        ttl: s(3600),
        max_crashes: 3,
    };
    let records = scene.store.records();
    assert_eq!(records.claim(&request).await, Ok(Claim::Granted { crashes: 0 }));
    let hold = Hold { identity: request.identity.clone(), owner, ttl: request.ttl };
    let condemn = Step::Condemn { error: "no stock".into(), lease: s(0) };
    assert_eq!(records.settle(&hold, &condemn).await, Ok(Settled::Applied));

    scene.publish("work", "m-1").await;
    scene.until("the letter is out", |book| book.count("dead-lettered") == 1).await;
    let letter = scene.letters("dlq.work").remove(0);
    assert_eq!((letter.generation(), scene.journal.book().runs.len()), (1, 0));
    move_back(&scene, &letter, "work").await;
    scene.until("the replay runs", |book| book.count("processed") == 1).await;
    assert_eq!(scene.journal.book().runs[0].attempt.generation, 2);
}

#[tokio::test(start_paused = true)]
async fn each_life_has_its_own_letter() {
    let scene =
        Scene::new(|run| async move { if run.attempt.generation == 0 { Err(Trouble::Passing) } else { Err(Trouble::Fatal) } });
    let _running = scene.start::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.until("it is dead", |book| book.count("dead-lettered") == 1).await;
    let first = scene.letters("dlq.work").remove(0);
    assert_eq!((first.reason(), first.generation(), first.runs(), first.attempts().len()), (Reason::Exhausted, 0, 4, 4));
    for life in 1..=3 {
        let last = scene.letters("dlq.work").pop().unwrap();
        move_back(&scene, &last, "work").await;
        scene.until("it is dead again", |book| book.count("dead-lettered") == 1 + life).await;
        let letter = scene.letters("dlq.work").pop().unwrap();
        let generation = u32::try_from(life).unwrap();
        assert_eq!((letter.reason(), letter.generation()), (Reason::Fatal, generation));
        assert_eq!((letter.runs(), letter.attempts().len()), (1, 1), "of this life only");
        assert!(letter.first_failure() >= first.died());
        assert_eq!(letter.first_failure(), letter.died());
        assert_eq!(letter.body(), first.body());
    }
}
