//! The store is away, loses requests or answers, or keeps something that is not a record: no message is lost, none runs unguarded, and no
//! attempt is spent on it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;

use harness::{Book, End, Fault, Op, Scene, Trouble, eventually, guarded, ms, s};
use mqguard::idempotency::protocol::State as Stands;
use mqguard::{Running, Status};

fn status(running: &Running) -> Status {
    running.health().consumers[0].1.clone()
}

fn is_paused(running: &Running) -> bool {
    matches!(status(running), Status::Paused { .. }) && !running.health().is_healthy()
}

fn done(book: &Book) -> bool {
    book.count("processed") == 1
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_while_the_store_is_away_and_everything_after() {
    let scene = Scene::smooth();
    let running = scene.start::<guarded>().await;
    scene.store.set_down(true);
    for n in 0..20 {
        scene.publish("work", &format!("m-{n}")).await;
    }
    eventually("it pauses", || is_paused(&running)).await;
    let said = status(&running).to_string();
    assert!(said.contains("store `redis`") && said.contains("connection refused"), "{said}");
    tokio::time::sleep(s(30)).await;
    assert!(is_paused(&running));
    assert_eq!((scene.queues.depth("work"), scene.queues.unsettled("work")), (20, 0));
    assert!(scene.store.calls(Op::Claim) <= 80, "{} claims", scene.store.calls(Op::Claim));
    scene.store.set_down(false);
    scene.until("all are done", |book| book.count("processed") == 20).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    assert_eq!((book.runs.len(), book.effects(), book.count("retried")), (20, 20, 0), "{book}");
    assert!(book.runs.iter().all(|run| run.attempt.retries == 0 && run.began <= s(40)), "{book}");
    assert!(running.health().is_healthy());
    assert_eq!(scene.queues.depth("dlq.work"), 0);
}

/// A store that answers pings but refuses to write, as a full or read-only server does.
#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_writes_pauses_too() {
    let scene = Scene::smooth();
    let running = scene.start::<guarded>().await;
    scene.store.refuse_writes(true);
    for n in 0..20 {
        scene.publish("work", &format!("m-{n}")).await;
    }
    eventually("it pauses", || is_paused(&running)).await;
    tokio::time::sleep(s(60)).await;
    // It tries now and then, not over and over.
    assert!(scene.broker.subscriptions() <= 30, "{} subscriptions in a minute", scene.broker.subscriptions());
    assert_eq!(scene.journal.book().runs.len(), 0);
    scene.store.refuse_writes(false);
    scene.until("all are done", |book| book.count("processed") == 20).await;
    let book = scene.journal.book();
    assert!(book.effects() == 20 && book.runs.iter().all(|run| run.attempt.retries == 0), "{book}");
    eventually("it is healthy again", || running.health().is_healthy()).await;
}

#[tokio::test(start_paused = true)]
async fn start_waits_for_the_store() {
    let scene = Scene::smooth();
    scene.declare::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.store.set_down(true);
    let starting = tokio::spawn({
        let scene = scene.clone();
        async move { scene.start::<guarded>().await }
    });
    tokio::time::sleep(s(60)).await;
    assert!(!starting.is_finished());
    assert_eq!((scene.queues.depth("work"), scene.broker.subscriptions()), (1, 0));
    scene.store.set_down(false);
    let running = starting.await.unwrap();
    assert!(running.health().is_healthy());
    scene.until("it is done", done).await;
}

/// A message of each end, with the step that records it going wrong in several ways, for longer than the lease too.
#[tokio::test(start_paused = true)]
async fn what_happened_is_recorded_when_the_store_is_back() {
    for (op, fault) in [Op::Complete, Op::Release, Op::Condemn, Op::Lettered]
        .into_iter()
        .flat_map(|op| [(op, Fault::RequestLost), (op, Fault::AnswerLost)])
    {
        for times in [1, 2, 7, 20] {
            let scene = ending_with(op);
            let _running = scene.start::<guarded>().await;
            scene.store.plan(op, fault, times);
            scene.publish("work", "m-1").await;
            ends_once(&scene, op, &format!("{op:?} {fault:?} {times} times")).await;
            assert!(scene.store.is_through());
        }
    }
}

/// The same while everything at the store fails, renewals as well.
#[tokio::test(start_paused = true)]
async fn an_outage_right_after_the_run_costs_nothing() {
    for op in [Op::Complete, Op::Release, Op::Condemn] {
        for outage in [ms(50), s(5), s(300)] {
            let scene = ending_with(op);
            let running = scene.start::<guarded>().await;
            scene.publish("work", "m-1").await;
            scene.until("it runs", |book| book.runs.len() == 1).await;
            scene.store.set_down(true);
            scene.until("it ran", |book| book.runs[0].ended.is_some()).await;
            tokio::time::sleep(outage).await;
            let book = scene.journal.book();
            assert_eq!(
                (book.events.len(), scene.queues.unsettled("work"), scene.queues.depth("dlq.work")),
                (0, 1, 0),
                "{op:?}\n{book}"
            );
            scene.store.set_down(false);
            ends_once(&scene, op, &format!("{op:?} after {outage:?}")).await;
            eventually("it is healthy again", || running.health().is_healthy()).await;
        }
    }
}

/// A scene in which a message comes to an end that is recorded with this step.
fn ending_with(op: Op) -> Scene {
    Scene::new(move |run| async move {
        tokio::time::sleep(ms(100)).await;
        match op {
            Op::Release if run.n == 1 => Err(Trouble::Passing),
            Op::Condemn | Op::Lettered => Err(Trouble::Fatal),
            _ => Ok(()),
        }
    })
}

/// The one end of a message: a success, after a retry for `Release`, or a letter.
async fn ends_once(scene: &Scene, op: Op, case: &str) {
    scene.until(case, |book| book.count("processed") + book.count("dead-lettered") == 1).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    let (runs, effects, letters) = match op {
        Op::Complete => (1, 1, 0),
        Op::Release => (2, 1, 0),
        _ => (1, 0, 1),
    };
    assert_eq!((book.runs.len(), book.effects(), scene.queues.depth("dlq.work")), (runs, effects, letters), "{case}\n{book}");
    if op == Op::Release {
        let waited = book.runs[1].began - book.runs[0].ended.unwrap().0;
        assert!(waited >= s(5) && book.runs[1].attempt.retries == 1, "{case}\n{book}");
    }
    let record = scene.store.record("work", "m-1").unwrap();
    assert_eq!(record.state, if letters == 0 { Stands::Success } else { Stands::Failed }, "{case}");
    assert!(!record.owes_letter(), "{case}");
    // A duplicate changes nothing.
    scene.publish("work", "m-1").await;
    scene.until("the duplicate is one", |book| book.count("duplicate") == 1).await;
    assert_eq!(scene.journal.book().runs.len(), runs, "{case}");
}

/// Whether the claim was made is not known: the message runs all the same, and once.
#[tokio::test(start_paused = true)]
async fn a_claim_goes_wrong_and_the_message_runs_once() {
    for fault in [Fault::RequestLost, Fault::AnswerLost] {
        for times in [1, 2, 3, 6] {
            let scene = Scene::smooth();
            let _running = scene.start::<guarded>().await;
            scene.store.plan(Op::Claim, fault, times);
            scene.publish("work", "m-1").await;
            scene.until("it is done", done).await;
            scene.at_rest("work").await;
            let book = scene.journal.book();
            assert_eq!(
                (book.runs.len(), book.runs[0].attempt.retries, book.count("retried")),
                (1, 0, 0),
                "{fault:?} {times}\n{book}"
            );
        }
    }
}

/// One answer lost costs no time: the claim is asked for again by the same owner.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_claim_does_not_wait_for_the_lease() {
    let scene = Scene::smooth();
    let _running = scene.start::<guarded>().await;
    scene.store.plan(Op::Claim, Fault::AnswerLost, 1);
    scene.publish("work", "m-1").await;
    scene.until("it is done", done).await;
    assert!(scene.journal.book().runs[0].began < ms(100));
    assert_eq!(scene.store.record("work", "m-1").unwrap().crashes, 0);
}

/// A renewal whose answer is lost is no reason to end the run.
#[tokio::test(start_paused = true)]
async fn lost_renewals_do_not_end_a_run() {
    for fault in [Fault::RequestLost, Fault::AnswerLost] {
        let scene = Scene::lasting(s(60));
        let _running = scene.start::<guarded>().await;
        scene.publish("work", "m-1").await;
        scene.until("it runs", |book| book.runs.len() == 1).await;
        for _ in 0..8 {
            scene.store.plan(Op::Renew, fault, 2);
            eventually("they were lost", || scene.store.is_through()).await;
            let asked = scene.store.calls(Op::Renew);
            eventually("one came through", || scene.store.calls(Op::Renew) > asked).await;
        }
        scene.until("it is done", done).await;
        assert_eq!(scene.journal.book().ends(), [Some(End::Success)]);
    }
}

/// What is under the key of `m-0` is no record: it fails like a run that fails, and the others do not notice.
#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_used_fails_its_message_only() {
    let scene = Scene::smooth();
    let running = scene.start::<guarded>().await;
    scene.store.damage("m-0");
    for n in 0..10 {
        scene.publish("work", &format!("m-{n}")).await;
    }
    scene.until("the others are done", |book| book.count("processed") == 9).await;
    assert!(scene.journal.now() < s(1));
    scene.until("it is a letter", |book| book.count("dead-lettered") == 1).await;
    assert_eq!(scene.journal.now(), s(35));
    scene.at_rest("work").await;
    assert_eq!(scene.journal.book().runs_of("m-0"), 0);
    assert!(running.health().is_healthy());
    let letter = scene.letters("dlq.work").remove(0);
    assert_eq!((letter.message_id(), letter.reason().to_string()), (Some("m-0"), "exhausted".to_owned()));
    let error = letter.error().unwrap().to_string();
    assert!(error.contains("mq:dedup:m-0") && error.contains("it is a list"), "{error}");
}

/// The record is damaged while the handler runs. What happened cannot be recorded; asking for ever would keep the message, and a place
/// for a handler, for ever.
#[tokio::test(start_paused = true)]
async fn a_record_that_is_damaged_under_a_run_does_not_keep_the_message() {
    for op in [Op::Complete, Op::Release, Op::Condemn] {
        let scene = ending_with(op);
        let running = scene.start::<guarded>().await;
        for id in ["m-0", "m-1"] {
            scene.publish("work", id).await;
        }
        scene.until("they run", |book| book.runs.len() == 2).await;
        scene.store.damage("m-0");
        scene
            .until("the other ends", |book| book.count_of("m-1", "processed") + book.count_of("m-1", "dead-lettered") == 1)
            .await;
        scene.until("it ends", |book| book.count_of("m-0", "processed") + book.count_of("m-0", "dead-lettered") == 1).await;
        scene.at_rest("work").await;
        let book = scene.journal.book();
        assert_eq!((book.runs_of("m-0"), book.effects_of("m-0")), (1, usize::from(op == Op::Complete)), "{op:?}\n{book}");
        let letters = scene.deaths("dlq.work").iter().filter(|(id, _)| id == "m-0").count();
        assert_eq!(letters, usize::from(op != Op::Complete), "{op:?}\n{book}");
        assert!(running.health().is_healthy());
    }
}

/// The pause ends when the store is back, whatever still runs from before.
#[tokio::test(start_paused = true)]
async fn slow_handlers_do_not_hold_up_resumption() {
    let scene = Scene::new(|run| async move {
        if run.id == "slow" {
            tokio::time::sleep(s(120)).await;
        }
        Ok(())
    });
    let running = scene.start::<guarded>().await;
    scene.publish("work", "slow").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    scene.store.set_down(true);
    scene.publish("work", "quick").await;
    eventually("it pauses", || is_paused(&running)).await;
    tokio::time::sleep(s(2)).await;
    scene.store.set_down(false);
    scene.until("the quick one is done", |book| book.count_of("quick", "processed") == 1).await;
    assert!(scene.journal.now() < s(10), "{:?}", scene.journal.now());
    assert!(running.health().is_healthy());
    scene.until("the slow one is done", |book| book.count_of("slow", "processed") == 1).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    assert_eq!((book.runs.len(), book.ends()), (2, vec![Some(End::Success); 2]), "{book}");
}

/// The store goes away again and again under a steady load.
#[tokio::test(start_paused = true)]
async fn outages_under_load_leave_every_effect_once() {
    let scene = Scene::new(|run| async move {
        tokio::time::sleep(ms(700)).await;
        if run.n == 1 && run.id.ends_with('3') { Err(Trouble::Passing) } else { Ok(()) }
    });
    let _running = scene.start::<guarded>().await;
    for n in 0..200 {
        scene.publish("work", &format!("m-{n}")).await;
        scene.publish("work", &format!("m-{n}")).await;
        tokio::time::sleep(ms(130)).await;
        scene.store.set_down(n % 25 > 18);
    }
    scene.store.set_down(false);
    scene.until("all are done", |book| book.count("processed") == 200).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    for n in 0..200 {
        let id = format!("m-{n}");
        assert_eq!((book.effects_of(&id), book.most_at_once(&id)), (1, 1), "{id}\n{book}");
    }
    assert_eq!(scene.queues.depth("dlq.work"), 0);
}

/// A password that is refused at start is a mistake, though the store was away before; one that is refused later may come to be right.
#[tokio::test(start_paused = true)]
async fn refused_access_is_final_at_start_and_passes_later() {
    for away in [0, 1, 3] {
        let scene = Scene::smooth();
        scene.store.plan(Op::Ping, Fault::RequestLost, away);
        scene.store.plan(Op::Ping, Fault::Refused, 1);
        let start = scene.guard().consumer::<guarded>().start();
        let error = tokio::time::timeout(s(30), start).await.unwrap().unwrap_err();
        let expected = "consumer `guarded` on queue `work`: store `redis`: the store refused: WRONGPASS invalid password";
        assert_eq!(error.to_string(), expected);
    }
    let scene = Scene::smooth();
    let running = scene.start::<guarded>().await;
    scene.store.plan(Op::Claim, Fault::RequestLost, 2);
    scene.store.plan(Op::Ping, Fault::Refused, 3);
    scene.publish("work", "m-1").await;
    eventually("it says so", || is_paused(&running) && status(&running).to_string().contains("WRONGPASS")).await;
    eventually("it is let in again", || running.health().is_healthy()).await;
    scene.until("it is done", done).await;
}
