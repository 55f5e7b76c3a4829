//! Orders of a CD shop, charged exactly as often as they should be: `cargo run --example orders`.
//!
//! 5,000 real orders are published, every 20th twice, as producers do. Charging fails now and then and is retried; an order over nothing
//! is a business error and becomes a dead letter at once. In the end the totals have to add up. Everything runs in this process, unless
//! `--broker` and `--store` name real servers.

#![allow(clippy::print_stdout, clippy::print_stderr, unreachable_pub, reason = "a program that talks to a person, in modules")]

mod input;
mod report;
mod tally;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use mqguard::{Attempt, Guard, MemoryStore, PublishError, Publisher, RetryableError, Running, State, consumer};
use tokio::task::JoinSet;

use self::input::{Order, Totals};
use self::tally::{Counts, Tally};

/// Charges an order. Everything around it, the attribute declares.
#[consumer(
    queue = "order.process",
    retry(max = 3, delay = "50ms", factor = 2),
    dlq(queue = "dlq.order.process.fail", exchange = "dlx.exchange"),
    idempotent = "redis",
    prefetch = 200
)]
async fn process_order(order: Order, attempt: Attempt, tally: State<Tally>) -> Result<(), OrderError> {
    if order.amount_cents == 0 {
        return Err(OrderError::NothingToCharge(order.order_id));
    }
    if attempt.retries < order.failures() {
        return Err(OrderError::PaymentUnavailable);
    }
    Ok(tally.charge(&order)?)
}

#[derive(Debug, thiserror::Error, RetryableError)]
enum OrderError {
    #[error("the payment service does not answer")]
    #[retryable]
    PaymentUnavailable,
    #[error("nothing to charge for order {0}")]
    #[fatal]
    NothingToCharge(u64),
    #[error("the ledger cannot be written")]
    #[retryable]
    Ledger(#[from] std::io::Error),
}

#[derive(Parser)]
#[command(about = "Publishes 5,000 real orders, some twice, and charges each once.")]
struct Options {
    /// Where messages travel: memory:// (in this process) or amqp://user:password@host:5672/vhost.
    #[arg(long, default_value = "memory://")]
    broker: String,
    /// Where it is kept what was done: memory:// or redis://host:6379.
    #[arg(long, default_value = "memory://")]
    store: String,
    /// A CSV file (customer,date,cds,amount_usd) in place of the bundled 5,000 orders.
    #[arg(long, value_name = "CSV")]
    input: Option<PathBuf>,
    /// Publish and end.
    #[arg(long, conflicts_with = "consume_only")]
    publish_only: bool,
    /// Consume what others publish, until `--expect` or Ctrl-C.
    #[arg(long)]
    consume_only: bool,
    /// End when this many orders have ended, in success or as dead letters.
    #[arg(long, value_name = "N", requires = "consume_only")]
    expect: Option<u64>,
    /// A file to which each charge is appended: order, CDs, cents.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// The summary as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// What is logged when `RUST_LOG` says nothing: what keeps it from working, but not each dead letter.
const LOGGED: &str = "error,mqguard_runtime::broker=warn,mqguard_runtime::consumer::worker=warn";

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| LOGGED.into()))
        .with_writer(std::io::stderr)
        .init();
    match run(&Options::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("orders: {error}");
            ExitCode::FAILURE
        }
    }
}

type Problem = Box<dyn std::error::Error>;

/// Does what the options say; returns whether the totals add up.
async fn run(options: &Options) -> Result<bool, Problem> {
    let orders = input::read(options.input.as_deref())?;
    let tally = Tally::new(options.ledger.as_deref())?;
    let started = Instant::now();
    let work = async {
        match (options.publish_only, options.consume_only) {
            (true, _) => publish_only(options, orders, &tally).await,
            (_, true) => consume_only(options, &tally).await,
            _ => publish_and_consume(options, orders, &tally).await,
        }
    };
    let adds_up = tokio::select! {
        adds_up = work => adds_up?,
        () = report::progress(tally.clone()) => false,
    };
    report::end_progress();
    let counts = tally.counts();
    let summary = if options.json { report::json } else { report::text };
    println!("{}", summary(&counts, started.elapsed()));
    if !adds_up {
        eprintln!("orders: the totals do not add up");
    }
    Ok(adds_up)
}

fn guard(options: &Options, tally: &Tally) -> Result<Guard, Problem> {
    let counted = tally.clone();
    let guard = Guard::connect(&options.broker)?.consumer::<process_order>().state(tally.clone());
    let guard = guard.observe(move |event| counted.count(event));
    // The attribute asks for the store `redis`; any other can take its place.
    Ok(if options.store.starts_with("memory:") {
        guard.store("redis", MemoryStore::new())
    } else {
        guard.store_url(&options.store)
    })
}

async fn publish_only(options: &Options, orders: Vec<Order>, tally: &Tally) -> Result<bool, Problem> {
    let guard = guard(options, tally)?;
    guard.declare().await?;
    publish(&guard.publisher(), orders, tally).await?;
    Ok(true)
}

async fn consume_only(options: &Options, tally: &Tally) -> Result<bool, Problem> {
    let running = guard(options, tally)?.start().await?;
    let enough = |counts: &Counts| options.expect.is_some_and(|expected| counts.ended() >= expected);
    let work = wait_or_stop(async {
        tally.wait_for(enough).await;
        // Repeats of the last orders may still be on their way.
        tally.wait_until_quiet(Duration::from_millis(500)).await;
    });
    let worked = tokio::select! {
        worked = work => worked,
        failed = running.failed() => failed.map_err(Into::into),
    };
    shut_down(running, worked).await?;
    Ok(options.expect.is_none_or(|expected| tally.counts().ended() == expected))
}

async fn publish_and_consume(options: &Options, orders: Vec<Order>, tally: &Tally) -> Result<bool, Problem> {
    let expected = input::expected(&orders);
    let repeats = orders.iter().filter(|order| order.is_published_twice()).count() as u64;
    let running = guard(options, tally)?.start().await?;
    let all = orders.len() as u64;
    let done = move |counts: &Counts| counts.ended() >= all && counts.duplicates >= repeats;
    let work = async {
        publish(&running.publisher(), orders, tally).await?;
        wait_or_stop(tally.wait_for(done)).await
    };
    let worked = tokio::select! {
        worked = work => worked,
        failed = running.failed() => failed.map_err(Into::into),
    };
    shut_down(running, worked).await?;
    Ok(adds_up(&tally.counts(), &expected, repeats))
}

async fn shut_down(running: Running, worked: Result<(), Problem>) -> Result<(), Problem> {
    let ended = running.shutdown().await;
    worked?;
    Ok(ended?)
}

/// A broker that lost its connection may deliver again what was done, so there can be more duplicates than repeats.
fn adds_up(counts: &Counts, expected: &Totals, repeats: u64) -> bool {
    counts.totals == *expected && counts.repeats == repeats && counts.duplicates >= repeats
}

/// Waits, or returns early at Ctrl-C or SIGTERM.
async fn wait_or_stop(wait: impl Future<Output = ()>) -> Result<(), Problem> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        () = wait => Ok(()),
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
        _ = terminate.recv() => Ok(()),
    }
}

/// Publishes all orders, those that are due twice, with some publishes under way at once.
async fn publish(publisher: &Publisher, orders: Vec<Order>, tally: &Tally) -> Result<(), Problem> {
    const UNDER_WAY: usize = 64;
    let mut publishing = JoinSet::new();
    for order in orders {
        if publishing.len() >= UNDER_WAY {
            publishing.join_next().await.transpose()?.transpose()?;
        }
        publishing.spawn(publish_order(publisher.clone(), order, tally.clone()));
    }
    while let Some(published) = publishing.join_next().await {
        published??;
    }
    Ok(())
}

async fn publish_order(publisher: Publisher, order: Order, tally: Tally) -> Result<(), PublishError> {
    publish_until_confirmed(&publisher, &order).await?;
    tally.published(false);
    if order.is_published_twice() {
        publish_until_confirmed(&publisher, &order).await?;
        tally.published(true);
    }
    Ok(())
}

/// A publish whose answer was lost is repeated under the same id: if both arrive, one is a duplicate.
async fn publish_until_confirmed(publisher: &Publisher, order: &Order) -> Result<(), PublishError> {
    for attempt in 0u32.. {
        let draft = match publisher.json(order) {
            Ok(draft) => draft.message_id(order.message_id()),
            Err(error) => unreachable!("an order is plain data: {error}"),
        };
        match draft.to_queue("order.process").await {
            Err(PublishError::Unknown { .. } | PublishError::Unavailable { .. }) if attempt < 100 => {
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            result => return result.map(drop),
        }
    }
    Ok(())
}
