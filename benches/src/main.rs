//! Throughput of mqguard beside what one would write by hand around the same clients: `cargo xtask bench`.
//!
//! Each contender drains a queue of the same messages; the contenders take turns, so that a slow phase of the machine hits all of them.
//! Told are the medians and the ratio of the medians. Needs `MQGUARD_BROKER` and `MQGUARD_REDIS`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a report is its output")]

mod guarded;
mod twin;
mod work;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;

use crate::work::Load;

type Run = Pin<Box<dyn Future<Output = anyhow::Result<Duration>> + Send>>;

/// What is compared: a pair that promises the same.
struct Pair {
    name: &'static str,
    twin: fn(Load) -> Run,
    guarded: fn(Load) -> Run,
}

const PAIRS: [Pair; 2] = [
    Pair { name: "consume and ack", twin: |load| Box::pin(twin::plain(load)), guarded: |load| Box::pin(guarded::plain(load)) },
    Pair {
        name: "with Redis: SET NX by hand, claim and complete by mqguard",
        twin: |load| Box::pin(twin::with_redis(load)),
        guarded: |load| Box::pin(guarded::with_redis(load)),
    },
];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let number = |name: &str, default: usize| match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name} is `{text}`, not a number")),
        Err(_) => Ok(default),
    };
    let (messages, rounds) = (number("MQGUARD_BENCH_MESSAGES", 40_000)?, number("MQGUARD_BENCH_ROUNDS", 7)?);
    let url = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set: run `cargo xtask bench`"));
    let (broker, redis) = (url("MQGUARD_BROKER")?, url("MQGUARD_REDIS")?);
    println!("{messages} messages a run, {rounds} rounds, prefetch {}", work::PREFETCH);
    let only = std::env::var("MQGUARD_BENCH_ONLY").unwrap_or_default();
    for pair in PAIRS.into_iter().filter(|pair| pair.name.contains(&only)) {
        let (mut by_hand, mut by_mqguard) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let load = |who: &str| Load::new(&broker, &redis, &format!("bench.{who}"), messages, round);
            let twin_first = round % 2 == 0;
            if twin_first {
                by_hand.push(measure(pair.twin, load("twin")).await?);
            }
            by_mqguard.push(measure(pair.guarded, load("guarded")).await?);
            if !twin_first {
                by_hand.push(measure(pair.twin, load("twin")).await?);
            }
        }
        let (by_hand, by_mqguard) = (median(by_hand), median(by_mqguard));
        println!("\n{}", pair.name);
        println!("  by hand  {by_hand:>8.0} messages/s");
        println!("  mqguard  {by_mqguard:>8.0} messages/s   {:.2} times", by_mqguard / by_hand);
    }
    Ok(())
}

/// Messages a second of one run on a full queue.
async fn measure(run: fn(Load) -> Run, load: Load) -> anyhow::Result<f64> {
    load.fill().await?;
    let messages = load.messages;
    let elapsed = run(load.clone()).await?;
    load.clear().await?;
    let rate = messages as f64 / elapsed.as_secs_f64();
    eprintln!("  {:<16} {rate:>8.0} messages/s", load.queue);
    Ok(rate)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
