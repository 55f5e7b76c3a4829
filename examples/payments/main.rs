//! Payments between accounts, each made exactly once: `cargo run --features sqlite --example payments`.
//!
//! 20,000 payments are published, every 20th twice, as producers do. Every 10th fails once and every 100th is refused, both when the
//! money has already been moved: the handler writes in the transaction that records its success, so that a failure undoes what it wrote.
//! With `--chaos` the worker is a process that is killed again and again in the middle. In the end every balance has to be right.

#![allow(clippy::print_stdout, clippy::print_stderr, unreachable_pub, reason = "a program that talks to a person, in modules")]

mod audit;
mod bank;
mod chaos;
mod consumers;
mod input;
mod report;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use self::bank::{Books, Problem};
use self::chaos::Chaos;
use self::input::Payment;
use self::report::{How, Summary};

#[derive(Parser)]
#[command(about = "Moves money between accounts, each payment once, and audits the books.")]
struct Options {
    /// Where messages travel: memory:// (in the process) or amqp://user:password@host:5672/vhost.
    ///
    /// What is in memory:// ends with its process: with `--chaos` each new worker publishes again what the books do not have. RabbitMQ
    /// keeps its messages, and they are published once.
    #[arg(long, default_value = "memory://")]
    broker: String,
    /// The database of the accounts and of the records: sqlite:FILE, postgres://user:password@host/database or mysql://... . By default a
    /// file that is removed in the end. Its tables `account`, `transfer` and `letter` are made anew.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// How many payments there are.
    #[arg(long, value_name = "N", default_value_t = 20_000, conflicts_with = "input", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    payments: i64,
    /// A CSV file (from,to,cents) of the payments.
    #[arg(long, value_name = "CSV")]
    input: Option<PathBuf>,
    /// Make the payments in a process that is killed in the middle, again and again.
    #[arg(long)]
    chaos: bool,
    /// How often it is killed.
    #[arg(long, value_name = "N", default_value_t = 50, requires = "chaos")]
    kills: u32,
    /// Chooses the moments of the kills; by default at random.
    #[arg(long, requires = "chaos")]
    seed: Option<u64>,
    /// The summary as one line of JSON.
    #[arg(long)]
    json: bool,
    /// Be the worker.
    #[arg(long, hide = true, conflicts_with = "chaos")]
    worker: bool,
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
            eprintln!("payments: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the options say; returns whether the books are right.
async fn run(options: &Options) -> Result<bool, Problem> {
    let payments = match &options.input {
        Some(path) => input::read(path)?,
        None => input::made_up(options.payments),
    };
    // A worker is given its store: being killed, it would leave a directory behind.
    let directory = options.store.is_none().then(tempfile::tempdir).transpose()?;
    let file = directory.as_ref().map(|directory| format!("sqlite:{}", directory.path().join("bank.db").display()));
    let store = options.store.clone().or(file).unwrap_or_default();
    let books = Books::open(&store)?;
    if options.worker {
        worker::work(&options.broker, &books, payments).await?;
        return Ok(true);
    }
    books.begin().await?;
    let started = Instant::now();
    let how = tokio::select! {
        how = make(options, &books, payments.clone()) => how?,
        () = report::progress(&books, payments.len()) => return Ok(false),
    };
    report::end_progress();
    let elapsed = started.elapsed();
    let audit = audit::audit(&payments, &books.snapshot().await?);
    let repeats = payments.iter().filter(|payment| payment.is_published_twice()).count() as u64;
    let summary = Summary { payments: payments.len() as u64, repeats, elapsed, audit: &audit, how };
    println!("{}", if options.json { summary.json() } else { summary.text() });
    tell(&audit.problems);
    Ok(audit.problems.is_empty())
}

/// Makes the payments, in this process or in others.
async fn make(options: &Options, books: &Books, payments: Vec<Payment>) -> Result<How, Problem> {
    if !options.chaos {
        return worker::publish_and_consume(&options.broker, books, payments).await.map(How::Plain);
    }
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000));
    eprintln!("payments: the worker is killed {} times, by --seed {seed}", options.kills);
    if worker::is_embedded(&options.broker) {
        eprintln!("payments: the embedded broker ends with its worker; each new one publishes again what has not ended");
    }
    let input = match &options.input {
        Some(path) => ["--input".to_owned(), path.display().to_string()],
        None => ["--payments".to_owned(), options.payments.to_string()],
    };
    let chaos = Chaos { broker: &options.broker, books, input: input.into(), kills: options.kills, seed };
    chaos.run(payments).await?;
    Ok(How::Chaos { kills: options.kills, seed })
}

/// Lists what the audit found.
fn tell(problems: &[String]) {
    const SHOWN: usize = 20;
    if problems.is_empty() {
        return;
    }
    eprintln!("payments: the books are wrong:");
    problems.iter().take(SHOWN).for_each(|problem| eprintln!("  {problem}"));
    if problems.len() > SHOWN {
        eprintln!("  and {} more", problems.len() - SHOWN);
    }
}
