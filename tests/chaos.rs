//! Workers that are killed at random moments, and whose connections are closed, in the middle of three kinds of consumers at once: what
//! they did is compared with what is promised. Set `MQGUARD_CHAOS_SEED` for other moments.

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

use std::collections::BTreeSet;

use audit::{Figures, Part};
use faults::Run;
use ledger::What;
use worker::{PARTS, TRANSACTIONAL};

#[test]
#[ignore = "a process of its own, for the test below"]
fn process_that_consumes() {
    if child::is_child() {
        worker::consume();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ, Redis and PostgreSQL: cargo xtask test"]
async fn nothing_is_lost_and_nothing_is_done_twice_that_need_not_be() {
    let seed = std::env::var("MQGUARD_CHAOS_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let mut run = Run::begin(seed).await;
    run.faults().await;
    run.finish().await;

    let lines = run.ledger.lines();
    let mut session = run.lab.session().await;
    let mut problems: Vec<String> = Vec::new();
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
        let killed: BTreeSet<u32> = (0..run.kills).collect();
        let part = Part { queue, lines: of_queue, effects, letters, killed, closures: run.closures };
        let figures = part.audit();
        eprintln!("{figures}");
        problems.extend(figures.problems);
    }
    eprintln!("kills {} by seed {seed}, connections closed {} times, {:?}", run.kills, run.closures, run.began.elapsed());
    assert!(run.kills >= faults::KILLS);
    // With all that was done to the message; of many problems the first show as much.
    assert!(problems.is_empty(), "{} problems, such as\n{}", problems.len(), problems[..problems.len().min(10)].join("\n"));
}
