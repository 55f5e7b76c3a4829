//! The retry copy or the letter cannot be published, or nobody knows whether it was: the delivery is kept until it can be.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod harness;

use harness::{Book, Publishing, Run, Scene, Trouble, bare, guarded, ms, s};
use mqguard::{DeclareMode, Running};

/// What leaves the message unpublished, and says so.
const NOT_STORED: [Publishing; 4] =
    [Publishing::Refused, Publishing::Unroutable, Publishing::Unavailable, Publishing::UnknownNotStored];

/// With a store and without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum With {
    Store,
    Nothing,
}

const BOTH: [With; 2] = [With::Store, With::Nothing];

impl With {
    fn queue(self) -> &'static str {
        if self == Self::Store { "work" } else { "bare" }
    }

    fn letters(self) -> &'static str {
        if self == Self::Store { "dlq.work" } else { "dlq.bare" }
    }

    /// Where the first retry copy goes.
    fn hold(self) -> &'static str {
        if self == Self::Store { "work.retry.5s" } else { "bare.retry.5s" }
    }

    async fn start(self, scene: &Scene) -> Running {
        match self {
            Self::Store => scene.start::<guarded>().await,
            Self::Nothing => scene.start::<bare>().await,
        }
    }
}

/// Fails in the first attempt, retryably, and succeeds in the second.
async fn second_time_lucky(run: Run) -> Result<(), Trouble> {
    if run.attempt.retries == 0 { Err(Trouble::Passing) } else { Ok(()) }
}

/// One message through a scene whose publishes to `to` go wrong like this.
async fn through(with: With, scene: &Scene, to: &str, faults: &[Publishing]) -> Book {
    faults.iter().for_each(|fault| scene.broker.plan(to, *fault));
    let _running = with.start(scene).await;
    scene.publish(with.queue(), "m-1").await;
    scene.until("it ends", |book| book.count("processed") + book.count("dead-lettered") >= 1).await;
    scene.at_rest(with.queue()).await;
    assert!(scene.broker.is_through(), "{faults:?}");
    scene.journal.book()
}

#[tokio::test(start_paused = true)]
async fn a_retry_copy_that_is_not_taken_is_published_again() {
    for (with, fault) in BOTH.into_iter().flat_map(|with| NOT_STORED.map(|fault| (with, fault))) {
        for times in [1, 2, 6] {
            let scene = Scene::new(second_time_lucky);
            let book = through(with, &scene, with.hold(), &vec![fault; times]).await;
            let case = format!("{with:?}, {fault:?} {times} times\n{book}");
            assert_eq!((book.runs.len(), book.effects(), book.count("retried")), (2, 1, 1), "{case}");
            assert!(book.runs[1].began >= s(5) && book.runs[1].attempt.retries == 1, "{case}");
            assert_eq!(scene.queues.depth(with.letters()), 0, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_is_not_taken_is_published_again() {
    for (with, fault) in BOTH.into_iter().flat_map(|with| NOT_STORED.map(|fault| (with, fault))) {
        for times in [1, 2, 6] {
            let scene = Scene::new(|_| async { Err(Trouble::Fatal) });
            let book = through(with, &scene, with.letters(), &vec![fault; times]).await;
            let case = format!("{with:?}, {fault:?} {times} times\n{book}");
            assert_eq!((book.runs.len(), scene.queues.depth(with.letters())), (1, 1), "{case}");
        }
    }
}

/// Both copies come back. With a store one runs; without one nothing can tell them apart.
#[tokio::test(start_paused = true)]
async fn a_retry_copy_that_was_stored_unnoticed_is_published_twice_and_runs_once() {
    for with in BOTH {
        let scene = Scene::new(second_time_lucky);
        let book = through(with, &scene, with.hold(), &[Publishing::UnknownStored]).await;
        let case = format!("{with:?}\n{book}");
        assert!(book.runs.iter().skip(1).all(|run| run.began >= s(5) && run.attempt.retries == 1), "{case}");
        let expected = if with == With::Store { (2, 1, 1) } else { (3, 2, 0) };
        assert_eq!((book.runs.len(), book.effects(), book.count("duplicate")), expected, "{case}");
        assert_eq!(scene.queues.depth(with.letters()), 0, "{case}");
    }
}

/// The copies that an unknown outcome leaves do not multiply the retries: of each turn one copy runs.
#[tokio::test(start_paused = true)]
async fn copies_of_every_turn_do_not_multiply() {
    let scene = Scene::new(|_| async { Err(Trouble::Passing) });
    for _ in 0..3 {
        scene.broker.plan("work.retry.5s", Publishing::UnknownStored);
        scene.broker.plan("work.retry.10s", Publishing::UnknownStored);
        scene.broker.plan("work.retry.20s", Publishing::UnknownStored);
    }
    let _running = scene.start::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.until("it is a letter", |book| book.count("dead-lettered") == 1).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    assert_eq!((book.runs.len(), scene.queues.depth("dlq.work")), (4, 1), "{book}");
    let began = book.began("m-1");
    assert!(began[1] >= s(5) && began[2] - began[1] >= s(10) && began[3] - began[2] >= s(20), "{book}");
}

/// A letter may come twice, never not at all; the handler has no part in it.
#[tokio::test(start_paused = true)]
async fn a_letter_that_was_stored_unnoticed_comes_twice() {
    for with in BOTH {
        let scene = Scene::new(|_| async { Err(Trouble::Fatal) });
        let book = through(with, &scene, with.letters(), &[Publishing::UnknownStored]).await;
        assert_eq!((book.runs.len(), book.effects(), scene.queues.depth(with.letters())), (1, 0, 2), "{with:?}\n{book}");
    }
}

/// The connection breaks while the copy's confirm is awaited. The delivery comes again, as after any lost connection, and the copy, where
/// there is one, is told apart by its turn.
#[tokio::test(start_paused = true)]
async fn the_connection_breaks_while_a_retry_copy_is_published() {
    for fault in [Publishing::CutStored, Publishing::CutNotStored] {
        for with in BOTH {
            let scene = Scene::new(second_time_lucky);
            let book = through(with, &scene, with.hold(), &[fault]).await;
            let case = format!("{with:?} {fault:?}\n{book}");
            assert_eq!(scene.queues.depth(with.letters()), 0, "{case}");
            let retries: Vec<&Run> = book.runs.iter().filter(|run| run.attempt.retries == 1).collect();
            let firsts: Vec<&Run> = book.runs.iter().filter(|run| run.attempt.retries == 0).collect();
            assert_eq!(firsts.len(), 2, "one run more for the lost connection: {case}");
            assert!(retries.iter().all(|run| run.began >= s(5)), "{case}");
            match (with, fault) {
                (With::Nothing, Publishing::CutStored) => assert_eq!((retries.len(), book.effects()), (2, 2), "{case}"),
                _ => assert_eq!((retries.len(), book.effects()), (1, 1), "{case}"),
            }
        }
    }
}

/// The copy was stored and the connection broke; the delivery that comes again succeeds. The copy must not run after that.
#[tokio::test(start_paused = true)]
async fn a_copy_of_an_attempt_that_succeeded_the_second_time_does_not_run() {
    let scene = Scene::failing(1);
    let book = through(With::Store, &scene, "work.retry.5s", &[Publishing::CutStored]).await;
    assert_eq!((book.runs.len(), book.effects(), book.count("duplicate")), (2, 1, 1), "{book}");
}

/// With a store the message is condemned before its letter is published: the delivery that comes again sends the letter, and does not run.
#[tokio::test(start_paused = true)]
async fn the_connection_breaks_while_a_letter_is_published() {
    for fault in [Publishing::CutStored, Publishing::CutNotStored] {
        for with in BOTH {
            let scene = Scene::new(|_| async { Err(Trouble::Fatal) });
            let book = through(with, &scene, with.letters(), &[fault]).await;
            let case = format!("{with:?} {fault:?}\n{book}");
            assert_eq!(book.runs.len(), if with == With::Store { 1 } else { 2 }, "{case}");
            let letters = if fault == Publishing::CutStored { 2 } else { 1 };
            assert_eq!((book.effects(), scene.queues.depth(with.letters())), (0, letters), "{case}");
        }
    }
}

/// The broker neither confirms nor breaks the connection: the delivery is kept, and the lease, for as long as that lasts.
#[tokio::test(start_paused = true)]
async fn a_publish_without_answer_holds_up_nothing_else() {
    for fault in [Publishing::HangStored, Publishing::HangNotStored] {
        for with in BOTH {
            let scene = Scene::new(|run| async move { if run.id == "m-1" { second_time_lucky(run).await } else { Ok(()) } });
            scene.broker.plan(with.hold(), fault);
            let running = with.start(&scene).await;
            scene.publish(with.queue(), "m-1").await;
            scene.until("it failed", |book| book.runs.len() == 1).await;
            scene.publish(with.queue(), "m-2").await;
            scene.until("the other is done", |book| book.count_of("m-2", "processed") == 1).await;
            tokio::time::sleep(s(60)).await;
            assert_eq!(scene.queues.unsettled(with.queue()), 1, "the delivery is kept");
            assert!(running.health().is_healthy());
            scene.queues.cut_connections();
            scene.until("it is done", |book| book.count_of("m-1", "processed") >= 1).await;
            scene.at_rest(with.queue()).await;
            let book = scene.journal.book();
            let case = format!("{with:?} {fault:?}\n{book}");
            assert!(book.runs.iter().all(|run| run.attempt.retries == 0 || run.began >= s(5)), "{case}");
            assert_eq!(scene.queues.depth(with.letters()), 0, "{case}");
            match with {
                With::Store => assert_eq!(book.effects_of("m-1"), 1, "{case}"),
                With::Nothing => assert!((1..=2).contains(&book.effects_of("m-1")), "{case}"),
            }
        }
    }
}

/// A letter without answer: the message is not run again in its place, neither while it hangs nor after.
#[tokio::test(start_paused = true)]
async fn a_letter_without_answer_is_sent_again_without_a_run() {
    for fault in [Publishing::HangStored, Publishing::HangNotStored] {
        let scene = Scene::new(|_| async { Err(Trouble::Fatal) });
        scene.broker.plan("dlq.work", fault);
        let _running = scene.start::<guarded>().await;
        scene.publish("work", "m-1").await;
        scene.until("it failed", |book| book.runs.len() == 1).await;
        tokio::time::sleep(s(60)).await;
        scene.publish("work", "m-1").await;
        scene.until("a duplicate waits", |book| book.count("busy") >= 1).await;
        scene.queues.cut_connections();
        scene.until("the letter is out", |book| book.count("dead-lettered") == 1).await;
        scene.at_rest("work").await;
        let book = scene.journal.book();
        let letters = if fault == Publishing::HangStored { 2 } else { 1 };
        assert_eq!((book.runs.len(), scene.queues.depth("dlq.work")), (1, letters), "{fault:?}\n{book}");
    }
}

/// The copy of a busy message goes wrong: it is not acknowledged without one.
#[tokio::test(start_paused = true)]
async fn a_deferred_duplicate_is_not_lost() {
    for fault in NOT_STORED.into_iter().chain([Publishing::UnknownStored, Publishing::CutStored, Publishing::CutNotStored]) {
        let scene = Scene::new(|run| async move {
            tokio::time::sleep(s(4)).await;
            if run.n == 1 { Err(Trouble::Passing) } else { Ok(()) }
        });
        let _running = scene.start::<guarded>().await;
        scene.publish("work", "m-1").await;
        scene.until("it runs", |book| book.runs.len() == 1).await;
        for _ in 0..3 {
            scene.broker.plan("work.retry.", fault);
        }
        scene.publish("work", "m-1").await;
        scene.until("it is done", |book| book.count("processed") == 1).await;
        scene.at_rest("work").await;
        let book = scene.journal.book();
        assert_eq!((book.effects(), scene.queues.depth("dlq.work"), book.most_at_once("m-1")), (1, 0, 1), "{fault:?}\n{book}");
    }
}

/// Somebody deletes the hold queue or the dead-letter queue while messages need it.
#[tokio::test(start_paused = true)]
async fn queues_that_were_deleted_are_declared_again() {
    for with in BOTH {
        let scene = Scene::new(|_| async { Err(Trouble::Passing) });
        let _running = with.start(&scene).await;
        scene.queues.delete_queue(with.hold());
        scene.queues.delete_queue(with.letters());
        scene.publish(with.queue(), "m-1").await;
        scene.until("it is a letter", |book| book.count("dead-lettered") == 1).await;
        let book = scene.journal.book();
        assert_eq!(book.began("m-1"), [s(0), s(5), s(15), s(35)], "{with:?}\n{book}");
        assert_eq!(scene.queues.depth(with.letters()), 1, "{with:?}");
    }
}

/// Where topology is not ours to declare, the delivery is kept until the queue is back.
#[tokio::test(start_paused = true)]
async fn without_a_right_to_declare_the_letter_waits_for_its_queue() {
    for mode in [DeclareMode::Verify, DeclareMode::Skip] {
        let scene = Scene::new(|_| async { Err(Trouble::Fatal) });
        scene.declare::<guarded>().await;
        let _running = scene.guard().declare_mode(mode).consumer::<guarded>().start().await.unwrap();
        scene.queues.delete_queue("dlq.work");
        scene.publish("work", "m-1").await;
        scene.until("it ran", |book| book.runs.len() == 1).await;
        tokio::time::sleep(s(60)).await;
        assert!(!scene.queues.queues().contains(&"dlq.work".to_owned()), "{mode:?}");
        assert_eq!(scene.queues.unsettled("work"), 1, "{mode:?}");
        scene.declare::<guarded>().await;
        scene.until("the letter is out", |book| book.count("dead-lettered") == 1).await;
        assert_eq!((scene.journal.book().runs.len(), scene.queues.depth("dlq.work")), (1, 1), "{mode:?}");
    }
}

/// A hundred messages, some fail, and every third publish goes wrong in one way or another.
#[tokio::test(start_paused = true)]
async fn whatever_goes_wrong_each_message_has_one_end() {
    let kinds = [
        Publishing::Refused,
        Publishing::Unroutable,
        Publishing::Unavailable,
        Publishing::UnknownNotStored,
        Publishing::UnknownStored,
        Publishing::CutStored,
        Publishing::CutNotStored,
    ];
    for seed in 0..4 {
        let scene = Scene::new(|run| async move {
            tokio::time::sleep(ms(300)).await;
            match run.id.bytes().last().unwrap_or(b'0') - b'0' {
                1..4 if run.n == 1 => Err(Trouble::Passing),
                4 => Err(Trouble::Passing),
                5 => Err(Trouble::Fatal),
                _ => Ok(()),
            }
        });
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..60 {
            let to = ["work.retry.", "work.retry.10s", "dlq.work"][random.usize(0..3)];
            scene.broker.plan(to, kinds[random.usize(0..kinds.len())]);
        }
        let _running = scene.start::<guarded>().await;
        for n in 0..100 {
            scene.publish("work", &format!("m-{n}")).await;
            if n % 7 == 0 {
                scene.publish("work", &format!("m-{n}")).await;
            }
        }
        scene.until("all have run", |book| book.runs.len() >= 100).await;
        scene.at_rest("work").await;
        let (book, deaths) = (scene.journal.book(), scene.deaths("dlq.work"));
        for n in 0..100 {
            let id = format!("m-{n}");
            let letters = deaths.iter().filter(|(dead, _)| *dead == id).count();
            let fails = matches!(n % 10, 4 | 5);
            let end = (book.effects_of(&id), letters.min(1), book.most_at_once(&id));
            assert_eq!(end, if fails { (0, 1, 1) } else { (1, 0, 1) }, "seed {seed}, {id}\n{book}");
        }
    }
}
