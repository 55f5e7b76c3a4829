//! SIGTERM and SIGINT to a process that runs a guard.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and processes that they watch")]

mod harness;

use std::time::Instant;

use harness::{Process, is_child, ms, s};
use mqguard::{Guard, MemoryBroker, consumer};
use tokio::sync::Semaphore;

struct Said(&'static str);

impl Drop for Said {
    fn drop(&mut self) {
        println!("{}", self.0);
    }
}

#[consumer(queue = "steps", dlq = "dlq.steps", concurrency = 1, idempotent = "memory")]
async fn step(_n: u32) {
    println!("begun");
    tokio::time::sleep(ms(700)).await;
    println!("ended");
}

#[consumer(queue = "endless", dlq = "dlq.endless", concurrency = 1)]
async fn endless(_n: u32) {
    let _dropped = Said("dropped");
    println!("begun");
    std::future::pending::<()>().await;
}

static BLOCKED: Semaphore = Semaphore::const_new(0);

#[consumer(queue = "blocked", dlq = "dlq.blocked", concurrency = 1)]
async fn blocked(_n: u32) {
    println!("begun");
    BLOCKED.add_permits(1);
    std::thread::sleep(s(60));
}

/// Publishes three numbers to a queue, runs, and says what is left in the queue.
fn run(queue: &str, consume: impl FnOnce(Guard) -> Guard) {
    if !is_child() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let broker = MemoryBroker::new();
        let guard = consume(Guard::with_broker(broker.clone()));
        guard.declare().await.unwrap();
        for n in 0..3 {
            guard.publisher().json(&n).unwrap().to_queue(queue).await.unwrap();
        }
        guard.run().await.unwrap();
        println!("left {}", broker.depth(queue) + broker.depth(&format!("dlq.{queue}")) * 100);
    });
    // A blocked handler would keep the runtime from being dropped.
    std::process::exit(0);
}

#[test]
#[ignore = "a process of its own, for the tests below"]
fn process_that_steps() {
    run("steps", |guard| guard.consumer::<step>());
}

#[test]
#[ignore = "a process of its own, for the tests below"]
fn process_that_is_endless() {
    run("endless", |guard| guard.consumer::<endless>().grace(s(60)));
}

#[test]
#[ignore = "a process of its own, for the tests below"]
fn process_that_is_endless_with_little_grace() {
    run("endless", |guard| guard.consumer::<endless>().grace(ms(300)));
}

#[test]
#[ignore = "a process of its own, for the tests below"]
fn process_that_is_blocked() {
    run("blocked", |guard| guard.consumer::<blocked>().grace(ms(300)));
}

#[test]
fn a_signal_finishes_what_runs_and_takes_nothing_new() {
    for signal in ["TERM", "INT"] {
        let mut process = Process::start("process_that_steps", &[]);
        process.until("begun");
        process.signal(signal);
        let (status, _) = process.end();
        assert!(status.success(), "{signal}: {status}");
        assert_eq!(["begun", "ended", "left 2"].map(|word| process.count(word)), [1, 1, 1], "{signal}: {:?}", process.said);
    }
}

#[test]
fn the_grace_period_ends_a_handler_that_does_not() {
    let mut process = Process::start("process_that_is_endless_with_little_grace", &[]);
    process.until("begun");
    process.signal("TERM");
    let (status, took) = process.end();
    assert!(status.success() && took < s(3), "{status} after {took:?}");
    assert_eq!(["begun", "dropped", "left 3"].map(|word| process.count(word)), [1, 1, 1], "{:?}", process.said);
}

#[test]
fn a_second_signal_ends_the_grace_period() {
    for (first, second) in [("TERM", "TERM"), ("INT", "INT"), ("TERM", "INT")] {
        let mut process = Process::start("process_that_is_endless", &[]);
        process.until("begun");
        process.signal(first);
        let began = Instant::now();
        process.signal_until_end(second);
        let (status, _) = process.end();
        assert!(status.success() && began.elapsed() < s(10), "{first}, {second}: {status} after {:?}", began.elapsed());
        assert_eq!(["begun", "dropped", "left 3"].map(|word| process.count(word)), [1, 1, 1], "{:?}", process.said);
    }
}

/// A handler that never yields cannot be dropped; it is left behind some seconds after the grace period.
#[test]
fn a_handler_that_never_yields_does_not_hold_up_the_end() {
    let mut process = Process::start("process_that_is_blocked", &[]);
    process.until("begun");
    process.signal("TERM");
    let (status, took) = process.end();
    assert!(status.success() && took < s(10), "{status} after {took:?}");
    assert_eq!(["begun", "left 3"].map(|word| process.count(word)), [1, 1], "{:?}", process.said);
}

/// The same in one process: `shutdown` returns.
#[test]
fn shutdown_returns_though_a_handler_never_yields() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let took = runtime.block_on(async {
        let running = Guard::embedded().consumer::<blocked>().grace(ms(100)).start().await.unwrap();
        running.publisher().json(&1).unwrap().to_queue("blocked").await.unwrap();
        let _begun = BLOCKED.acquire().await.unwrap();
        let began = Instant::now();
        running.shutdown().await.unwrap();
        began.elapsed()
    });
    runtime.shutdown_background();
    assert!(took < s(6), "{took:?}");
}
