//! From start to shutdown: lost connections, deleted queues, unreachable brokers, grace, and what is left for the next process.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;

use std::time::Duration;

use harness::{Book, End, Logs, Op, Publishing, Scene, Trouble, bare, eventually, guarded, ms, s};
use mqguard::broker::{Broker, BrokerError, Queue, QueueType, Topology};
use mqguard::idempotency::protocol::State as Stands;
use mqguard::{Context, DeclareMode, Error, Running, State, Status, consumer};
use serde_json::Value;
use tokio::time::Instant;

#[consumer(queue = "narrow", dlq = "dlq.narrow", prefetch = 20, concurrency = 4, idempotent(store = "redis", lease = "10s"))]
async fn narrow(_body: Value, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

/// The state of the consumer of a queue.
fn status(running: &Running, queue: &str) -> Status {
    running.health().consumers.into_iter().find(|(of, _)| *of == queue).unwrap().1
}

fn done(book: &Book) -> bool {
    book.count("processed") == 1
}

#[tokio::test(start_paused = true)]
async fn lost_connections_with_handlers_running() {
    let scene = Scene::lasting(s(2));
    let running = scene.start::<guarded>().await;
    for n in 0..100 {
        scene.publish("work", &format!("m-{n}")).await;
    }
    for pause in [500, 1_000, 100, 2_500, 700] {
        tokio::time::sleep(ms(pause)).await;
        scene.queues.cut_connections();
    }
    scene.until("all are done", |book| book.effects() == 100).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    for n in 0..100 {
        let id = format!("m-{n}");
        assert_eq!((book.runs_of(&id), book.effects_of(&id)), (1, 1), "{id}\n{book}");
    }
    assert!(running.health().is_healthy());
    assert_eq!(scene.queues.depth("dlq.work"), 0);
}

#[tokio::test(start_paused = true)]
async fn the_broker_goes_away_and_comes_back() {
    let scene = Scene::lasting(s(5));
    let running = scene.start::<guarded>().await;
    for n in 0..10 {
        scene.publish("work", &format!("m-{n}")).await;
    }
    scene.until("they run", |book| book.runs.len() == 10).await;
    scene.queues.set_available(false);
    eventually("it says so", || matches!(status(&running, "work"), Status::Reconnecting { .. })).await;
    assert!(!running.health().is_healthy());
    tokio::time::sleep(s(20)).await;
    let said = status(&running, "work").to_string();
    assert!(said.contains("unavailable"), "{said}");
    scene.queues.set_available(true);
    let back = scene.journal.now();
    eventually("it consumes again", || running.health().is_healthy()).await;
    assert!(scene.journal.now() - back <= s(6));
    for n in 10..20 {
        scene.publish("work", &format!("m-{n}")).await;
    }
    scene.until("all are done", |book| book.effects() == 20).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    assert_eq!((book.runs.len(), book.count("duplicate")), (20, 10), "{book}");
}

/// A connection that breaks again as soon as it is there is not asked for without pause.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_never_lasts_is_not_begun_over_and_over() {
    let scene = Scene::smooth();
    let _running = scene.start::<guarded>().await;
    let mut last = scene.broker.subscriptions();
    let end = Instant::now() + s(60);
    while Instant::now() < end {
        scene.queues.cut_connections();
        eventually("it subscribes again", || scene.broker.subscriptions() > last).await;
        last = scene.broker.subscriptions();
    }
    assert!(last <= 30, "{last} subscriptions in a minute");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_queue_is_declared_again_and_consumed() {
    let scene = Scene::lasting(s(3));
    let running = scene.start::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    scene.queues.delete_queue("work");
    eventually("it is there again", || scene.queues.queues().contains(&"work".to_owned())).await;
    scene.publish("work", "m-2").await;
    scene.until("both are done", |book| book.effects() == 2).await;
    eventually("it is healthy", || running.health().is_healthy()).await;
    assert_eq!(scene.journal.book().ends(), [Some(End::Success); 2]);
}

/// Where topology is not ours to declare, a queue that is gone ends the consumer: the process ends, or its health says so.
#[tokio::test(start_paused = true)]
async fn a_deleted_queue_that_may_not_be_declared_fails_the_consumer() {
    let scene = Scene::lasting(s(100));
    scene.declare::<guarded>().await;
    let guard = scene.guard().declare_mode(DeclareMode::Verify).consumer::<guarded>();
    let running = guard.start().await.unwrap();
    scene.publish("work", "m-1").await;
    scene.until("a handler runs", |book| book.runs.len() == 1).await;
    scene.queues.delete_queue("work");
    let error = running.failed().await.unwrap_err().to_string();
    assert!(error.contains("consumer `guarded` on queue `work`") && error.contains("does not exist"), "{error}");
    assert!(scene.journal.now() < s(10));
    assert!(matches!(status(&running, "work"), Status::Failed { .. }) && !running.health().is_healthy());
    assert_eq!(running.shutdown().await.unwrap_err().to_string(), error);
    assert_eq!(scene.journal.book().ends(), [Some(End::Cancelled)], "the grace period was over");
}

#[tokio::test(start_paused = true)]
async fn run_ends_with_the_failure_of_a_consumer() {
    let scene = Scene::lasting(s(3));
    scene.declare::<guarded>().await;
    let guard = scene.guard().declare_mode(DeclareMode::Verify).consumer::<guarded>().consumer::<bare>();
    scene.declare::<bare>().await;
    let run = tokio::spawn(guard.run());
    scene.publish("bare", "m-1").await;
    scene.until("the other runs", |book| book.runs.len() == 1).await;
    scene.queues.delete_queue("work");
    let error = run.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Consumer { consumer: "guarded", queue: "work", .. }), "{error}");
    assert_eq!(scene.journal.book().ends(), [Some(End::Success)], "the other consumer was drained");
    scene.publish("bare", "m-2").await;
    tokio::time::sleep(s(60)).await;
    assert_eq!(scene.journal.book().runs.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_what_runs_and_leaves_the_rest_untouched() {
    let scene = Scene::lasting(s(5));
    let running = scene.start::<narrow>().await;
    for n in 0..100 {
        scene.publish("narrow", &format!("m-{n}")).await;
    }
    scene.until("some run", |book| book.runs.len() == 12).await;
    tokio::time::sleep(s(1)).await;
    let began = Instant::now();
    running.shutdown().await.unwrap();
    assert_eq!(began.elapsed(), s(4));
    let book = scene.journal.book();
    assert_eq!((book.runs.len(), book.effects(), book.count("processed")), (12, 12, 12), "{book}");
    assert_eq!((scene.queues.depth("narrow"), scene.queues.unsettled("narrow")), (88, 0));
    assert_eq!(scene.store.records().len(), 12);
    // For the next process they are as new, but for the mark that some were delivered before.
    let next = scene.neighbour(|_| async { Ok(()) });
    let _running = next.start::<narrow>().await;
    scene.until("all are done", |book| book.count("processed") == 100).await;
    let book = scene.journal.book();
    assert!(book.runs.iter().all(|run| run.attempt.retries == 0), "{book}");
    let redelivered = book.runs.iter().filter(|run| run.redelivered).count();
    assert_eq!((book.effects(), redelivered, book.count("duplicate")), (100, 0, 0), "{book}");
}

/// Whether nobody left a message to run alone is looked up without a subscription, which a shutdown would have to wait for.
#[tokio::test(start_paused = true)]
async fn a_shutdown_right_after_the_start_waits_for_nothing() {
    let scene = Scene::smooth();
    scene.broker.pass_for_embedded(false);
    let running = scene.start::<bare>().await;
    scene.publish("bare", "m-1").await;
    scene.until("it is done", |book| book.count("processed") == 1).await;
    let began = Instant::now();
    running.shutdown().await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!((scene.queues.depth("bare"), scene.queues.unsettled("bare")), (0, 0));
}

/// Over and over: nothing is lost or run twice by stopping and starting.
#[tokio::test(start_paused = true)]
async fn fifty_stops_and_starts_lose_nothing() {
    let scene = Scene::new(|run| async move {
        tokio::time::sleep(ms(30)).await;
        if run.n == 1 && run.id.ends_with('9') { Err(Trouble::Passing) } else { Ok(()) }
    });
    scene.declare::<guarded>().await;
    let mut published = 0;
    for _ in 0..50 {
        let running = scene.start::<guarded>().await;
        for _ in 0..30 {
            scene.publish("work", &format!("m-{published}")).await;
            published += 1;
            tokio::time::sleep(ms(3)).await;
        }
        running.shutdown().await.unwrap();
        assert_eq!(scene.queues.unsettled("work"), 0);
    }
    let _running = scene.start::<guarded>().await;
    scene.until("all are done", |book| book.effects() == published).await;
    scene.at_rest("work").await;
    let book = scene.journal.book();
    assert!((0..published).all(|n| book.effects_of(&format!("m-{n}")) == 1), "{book}");
    assert_eq!(book.count("duplicate"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_exceeds_the_grace_is_dropped_and_its_message_runs_at_once_elsewhere() {
    let scene = Scene::new(|_| std::future::pending());
    let running = scene.guard().grace(s(2)).consumer::<guarded>().start().await.unwrap();
    scene.publish("work", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    let began = Instant::now();
    running.shutdown().await.unwrap();
    assert_eq!(began.elapsed(), s(2));
    let book = scene.journal.book();
    assert_eq!((book.ends(), book.count("returned")), (vec![Some(End::Cancelled)], 1), "{book}");
    assert_eq!((scene.queues.depth("work"), scene.queues.depth("dlq.work")), (1, 0));
    assert_eq!(scene.store.record("work", "m-1").unwrap().state, Stands::Pending);
    let next = scene.neighbour(|_| async { Ok(()) });
    let began = Instant::now();
    let _running = next.start::<guarded>().await;
    scene.until("it is done", done).await;
    assert!(began.elapsed() < ms(10), "it did not wait for a lease: {:?}", began.elapsed());
    let book = scene.journal.book();
    assert_eq!((book.runs[1].attempt.retries, scene.store.record("work", "m-1").unwrap().crashes), (0, 0), "{book}");
}

/// No store, no retries left: being stopped is no failure.
#[tokio::test(start_paused = true)]
async fn being_stopped_is_no_failure() {
    let scene = Scene::new(|_| std::future::pending());
    let running = scene.guard().grace(Duration::ZERO).consumer::<bare>().start().await.unwrap();
    scene.publish("bare", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    running.shutdown().await.unwrap();
    assert_eq!((scene.queues.depth("bare"), scene.queues.depth("dlq.bare")), (1, 0));
    assert!(scene.queues.messages("bare")[0].headers.is_empty(), "it is as it was");
}

/// While a shutdown waits for a handler, messages that come are left for others.
#[tokio::test(start_paused = true)]
async fn nothing_new_is_taken_while_draining() {
    let scene = Scene::lasting(s(10));
    let running = scene.start::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    let shutdown = tokio::spawn(running.shutdown());
    tokio::time::sleep(s(1)).await;
    scene.publish("work", "m-2").await;
    shutdown.await.unwrap().unwrap();
    assert_eq!((scene.journal.book().runs.len(), scene.queues.depth("work")), (1, 1));
}

/// A retry that comes due during the shutdown waits for the next process.
#[tokio::test(start_paused = true)]
async fn a_failure_while_draining_is_retried_by_the_next_process() {
    let scene = Scene::new(|run| async move {
        tokio::time::sleep(s(2)).await;
        if run.n == 1 { Err(Trouble::Passing) } else { Ok(()) }
    });
    let running = scene.start::<guarded>().await;
    scene.publish("work", "m-1").await;
    scene.until("it runs", |book| book.runs.len() == 1).await;
    running.shutdown().await.unwrap();
    assert_eq!(scene.journal.book().count("retried"), 1);
    let _running = scene.start::<guarded>().await;
    scene.until("it is done", done).await;
    assert_eq!(scene.journal.book().began("m-1"), [s(0), s(7)]);
}

/// The store, the broker or both are away: a shutdown ends within its grace and a little, and what was not recorded comes again.
#[tokio::test(start_paused = true)]
async fn a_shutdown_during_an_outage_ends() {
    for (store, broker) in [(true, false), (false, true), (true, true)] {
        for fails in [false, true] {
            let scene = Scene::new(move |_| async move {
                tokio::time::sleep(s(1)).await;
                if fails { Err(Trouble::Passing) } else { Ok(()) }
            });
            let running = scene.start::<guarded>().await;
            scene.publish("work", "m-1").await;
            scene.until("it runs", |book| book.runs.len() == 1).await;
            scene.store.set_down(store);
            scene.queues.set_available(!broker);
            tokio::time::sleep(s(2)).await;
            let began = Instant::now();
            running.shutdown().await.unwrap();
            assert!(began.elapsed() <= s(29), "store {store}, broker {broker}: {:?}", began.elapsed());
            scene.store.set_down(false);
            scene.queues.set_available(true);
            let next = scene.neighbour(|_| async { Ok(()) });
            let _running = next.start::<guarded>().await;
            scene.until("it is done", |book| book.effects() >= 1).await;
            next.at_rest("work").await;
            assert_eq!(scene.queues.depth("dlq.work"), 0);
        }
    }
}

/// A store or a broker that does not answer at all.
#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_though_nobody_answers() {
    for publishing in [false, true] {
        let scene = Scene::new(move |_| async move {
            tokio::time::sleep(s(1)).await;
            if publishing { Err(Trouble::Passing) } else { Ok(()) }
        });
        let running = scene.start::<guarded>().await;
        scene.publish("work", "m-1").await;
        scene.until("it runs", |book| book.runs.len() == 1).await;
        if publishing {
            scene.broker.plan("work.retry.", Publishing::HangNotStored);
        } else {
            scene.store.freeze(true);
        }
        scene.until("it ran", |book| book.runs[0].ended.is_some()).await;
        let began = Instant::now();
        running.shutdown().await.unwrap();
        assert!(began.elapsed() <= s(29), "{:?}", began.elapsed());
        assert_eq!((scene.queues.depth("work"), scene.queues.unsettled("work")), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_given_up_stops_all_that_it_began() {
    let scene = Scene::smooth();
    scene.declare::<guarded>().await;
    scene.declare::<bare>().await;
    scene.store.set_down(true);
    // `bare` consumes at once, `guarded` waits for the store.
    let start = scene.guard().consumer::<guarded>().consumer::<bare>().start();
    assert!(tokio::time::timeout(s(1), start).await.is_err());
    scene.store.set_down(false);
    tokio::time::sleep(s(30)).await;
    scene.publish("work", "m-1").await;
    scene.publish("bare", "m-2").await;
    tokio::time::sleep(s(60)).await;
    assert_eq!((scene.journal.book().runs.len(), scene.queues.depth("work"), scene.queues.depth("bare")), (0, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_running_guard_that_is_dropped_drains_in_the_background() {
    let scene = Scene::new(|run| async move {
        if run.id == "endless" {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(s(3)).await;
        Ok(())
    });
    let running = scene.guard().grace(s(10)).consumer::<guarded>().start().await.unwrap();
    scene.publish("work", "m-1").await;
    scene.publish("work", "endless").await;
    scene.until("they run", |book| book.runs.len() == 2).await;
    drop(running);
    scene.publish("work", "m-2").await;
    scene.until("the running one is done", done).await;
    scene.until("the endless one is dropped", |book| book.ends()[1] == Some(End::Cancelled)).await;
    assert_eq!(scene.journal.now(), s(10));
    eventually("nothing is out", || scene.queues.unsettled("work") == 0).await;
    tokio::time::sleep(s(60)).await;
    assert_eq!((scene.journal.book().runs.len(), scene.queues.depth("work")), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn start_waits_for_a_broker_that_cannot_be_reached() {
    let scene = Scene::smooth();
    scene.queues.set_available(false);
    let starting = tokio::spawn({
        let scene = scene.clone();
        async move { scene.start::<guarded>().await }
    });
    tokio::time::sleep(s(60)).await;
    assert!(!starting.is_finished());
    scene.queues.set_available(true);
    let running = starting.await.unwrap();
    assert!(scene.journal.now() <= s(66) && running.health().is_healthy());
    scene.publish("work", "m-1").await;
    scene.until("it is done", done).await;
}

/// A queue of ours with other arguments.
async fn spoil(scene: &Scene, queue: &str) {
    let queue = Queue { message_ttl: Some(s(60)), ..Queue::new(queue, QueueType::Classic) };
    let topology = Topology { queues: vec![queue], ..Topology::default() };
    scene.queues.declare(&topology, DeclareMode::Declare).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_declared_fails_the_start_and_the_others_are_drained() {
    let scene = Scene::lasting(s(3));
    scene.declare::<bare>().await;
    scene.publish("bare", "m-1").await;
    spoil(&scene, "work").await;
    let error = scene.guard().consumer::<bare>().consumer::<guarded>().start().await.unwrap_err();
    let said = error.to_string();
    for part in ["consumer `guarded` on queue `work`", "x-queue-type", "classic", "quorum", "DeclareMode::Verify"] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    assert!(scene.journal.book().runs.iter().all(|run| matches!(run.ended, Some((_, End::Success)))));
    scene.publish("bare", "m-2").await;
    tokio::time::sleep(s(60)).await;
    assert!(scene.journal.book().runs_of("m-2") == 0 && scene.queues.unsettled("bare") == 0);
}

/// The fatal mistake of one consumer is told, though another one waits for its store.
#[tokio::test(start_paused = true)]
async fn a_consumer_that_waits_does_not_hide_the_failure_of_another() {
    let scene = Scene::smooth();
    spoil(&scene, "bare").await;
    scene.store.set_down(true);
    let start = scene.guard().consumer::<guarded>().consumer::<bare>().start();
    let error = tokio::time::timeout(s(10), start).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("consumer `bare` on queue `bare`"), "{error}");
}

/// A password that is refused at start is a mistake, though the broker was away before; one that is refused later may come to be right.
#[tokio::test(start_paused = true)]
async fn refused_access_is_final_at_start_and_passes_later() {
    let refused = || BrokerError::Refused("ACCESS_REFUSED for user `orders`".into());
    let away = || BrokerError::Unavailable("connection refused".into());
    for before in [vec![], vec![away()], vec![away(), away(), away()]] {
        let scene = Scene::smooth();
        scene.broker.fail_declaring(before.into_iter().chain([refused()]));
        let start = scene.guard().consumer::<guarded>().start();
        let error = tokio::time::timeout(s(30), start).await.unwrap().unwrap_err();
        assert!(error.to_string().contains("ACCESS_REFUSED"), "{error}");
    }
    let scene = Scene::smooth();
    let running = scene.start::<guarded>().await;
    scene.broker.fail_declaring(std::iter::repeat_with(refused).take(5));
    scene.queues.cut_connections();
    eventually("it says so", || status(&running, "work").to_string().contains("ACCESS_REFUSED")).await;
    eventually("it is let in again", || running.health().is_healthy()).await;
    scene.publish("work", "m-1").await;
    scene.until("it is done", done).await;
}

#[tokio::test(start_paused = true)]
async fn the_log_tells_each_change_of_state_once() {
    let logs = Logs::capture(tracing::Level::INFO);
    let scene = Scene::smooth();
    let running = scene.start::<guarded>().await;
    scene.queues.set_available(false);
    tokio::time::sleep(s(60)).await;
    scene.queues.set_available(true);
    eventually("it is back", || running.health().is_healthy()).await;
    scene.store.set_down(true);
    scene.publish("work", "m-1").await;
    tokio::time::sleep(s(60)).await;
    scene.store.set_down(false);
    scene.until("it is done", done).await;
    running.shutdown().await.unwrap();
    let lines = |text: &str| logs.with(text).into_iter().filter(|line| line.contains("queue=\"work\"")).count();
    assert_eq!(
        [lines("trying to reconnect"), lines("paused until the store is back"), lines("consuming queue")],
        [1, 1, 3],
        "{}",
        logs.text()
    );
    assert!(scene.store.calls(Op::Ping) > 5);
}
