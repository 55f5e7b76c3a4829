//! Workers that are killed at random moments, and whose connections are closed, in the middle of three kinds of consumers at once.
//! What they did is compared with what is promised. Set `MQGUARD_CHAOS_SEED` for other moments.

#![cfg(all(feature = "rabbitmq", feature = "redis", feature = "mysql", feature = "postgres", feature = "sqlite", unix))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]
#![allow(unreachable_pub, reason = "modules that are shared with other tests")]

#[path = "chaos/audit.rs"]
mod audit;
#[allow(dead_code, reason = "for other tests")]
#[path = "harness/child.rs"]
mod child;
#[allow(dead_code, reason = "for other tests")]
#[path = "sql/database.rs"]
mod database;
#[path = "chaos/faults.rs"]
mod faults;
#[path = "chaos/ledger.rs"]
mod ledger;
#[path = "orders/process.rs"]
mod process;
#[allow(dead_code, reason = "for other tests")]
#[path = "redis/server.rs"]
mod redis_server;
#[path = "support/mod.rs"]
mod script;
#[allow(dead_code, reason = "for other tests")]
#[path = "sql/session.rs"]
mod session;
#[allow(dead_code, reason = "for other tests")]
#[path = "servers/support.rs"]
mod support;
#[path = "chaos/worker.rs"]
mod worker;

use std::ops::RangeInclusive;

use audit::{Figures, Part};
use faults::Run;
use ledger::What;
use worker::{LAST_MIXED, PARTS, TRANSACTIONAL};

#[test]
#[ignore = "a process of its own, for the test below"]
fn process_that_consumes() {
    if child::is_child() {
        worker::consume();
    }
}

/// Both at once would take the time of each other: on a slow machine leases would lapse.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ, Redis and PostgreSQL: cargo xtask test"]
async fn nothing_is_lost_and_nothing_is_done_twice_that_need_not_be() {
    through_kills(1..=1_200, 24).await;
}

/// The kills fall in the midst of retries and letters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ, Redis and PostgreSQL: cargo xtask test"]
async fn no_letter_is_lost_when_every_message_fails() {
    through_kills(LAST_MIXED + 1..=LAST_MIXED + 600, 12).await;
}

async fn through_kills(messages: RangeInclusive<u32>, kills: u32) {
    let _alone = ALONE.lock().await;
    let seed = std::env::var("MQGUARD_CHAOS_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let mut run = Run::begin(seed, messages).await;
    run.faults().await;
    run.finish().await;

    let problems = audit(&run).await;
    eprintln!("kills {} by seed {seed}, connections closed {} times, {:?}", run.kills, run.closures, run.began.elapsed());
    assert_eq!(run.kills, kills);
    // With all that was done to the message; of many problems the first show as much.
    assert!(problems.is_empty(), "{} problems, such as\n{}", problems.len(), problems[..problems.len().min(10)].join("\n"));
}

/// Prints the figures of each queue; what is not as it is promised.
async fn audit(run: &Run) -> Vec<String> {
    let lines = run.ledger.lines();
    let mut session = run.lab.session().await;
    let mut problems = Vec::new();
    eprintln!("{}", Figures::HEAD);
    for queue in PARTS {
        let of_queue: Vec<_> = lines.iter().filter(|line| line.queue == queue).cloned().collect();
        let effects: Vec<u32> = if queue == TRANSACTIONAL {
            let numbers = session.numbers("SELECT message FROM effect").await;
            numbers.into_iter().map(|number| number.try_into().expect("one of ours")).collect()
        } else {
            of_queue.iter().filter(|line| line.what == What::Effect).map(|line| line.message).collect()
        };
        let letters = run.letters(queue).await;
        let (killed, messages) = ((0..run.kills).collect(), run.messages.clone());
        let figures = Part { queue, messages, lines: of_queue, effects, letters, killed, closures: run.closures }.audit();
        eprintln!("{figures}");
        problems.extend(figures.problems);
    }
    problems
}
