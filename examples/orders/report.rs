//! What is shown: progress while it runs, and the summary.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use serde_json::json;

use super::input::{EXHAUSTED, NOTHING_TO_CHARGE};
use super::tally::{Counts, Tally};

/// Shows live progress on a terminal, and nothing elsewhere, until dropped by its caller.
pub async fn progress(tally: Tally) {
    if !std::io::stderr().is_terminal() {
        return std::future::pending().await;
    }
    let started = Instant::now();
    let mut every = tokio::time::interval(Duration::from_millis(100));
    loop {
        every.tick().await;
        let counts = tally.counts();
        let line = format!(
            "{:5.1} s   published {:>6}   processed {:>6}   duplicates {:>4}   retries {:>5}   dead letters {:>3}",
            started.elapsed().as_secs_f32(),
            grouped(counts.published + counts.repeats),
            grouped(counts.totals.processed),
            counts.duplicates,
            counts.retries,
            counts.totals.dead_letters.values().sum::<u64>(),
        );
        let mut terminal = std::io::stderr().lock();
        // A terminal that is gone has nobody to tell.
        let _ = write!(terminal, "\r{line}").and_then(|()| terminal.flush());
    }
}

/// Ends the line of progress.
pub fn end_progress() {
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
}

/// The summary as one line of JSON.
pub fn json(counts: &Counts, elapsed: Duration) -> String {
    let letters = |reason| counts.totals.dead_letters.get(reason).copied().unwrap_or(0);
    json!({
        "published": counts.published,
        "repeats": counts.repeats,
        "processed": counts.totals.processed,
        "duplicates": counts.duplicates,
        "retries": counts.retries,
        "dead_letters": { "nothing_to_charge": letters(NOTHING_TO_CHARGE), "exhausted": letters(EXHAUSTED) },
        "cds": counts.totals.cds,
        "amount_cents": counts.totals.amount_cents,
        "elapsed_ms": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
    })
    .to_string()
}

/// The summary for a person.
pub fn text(counts: &Counts, elapsed: Duration) -> String {
    let totals = &counts.totals;
    let mut lines = vec![
        format!("published           {:>10}   and {} of them twice", grouped(counts.published), grouped(counts.repeats)),
        format!("processed           {:>10}   in {:.1} s", grouped(totals.processed), elapsed.as_secs_f32()),
        format!("duplicates skipped  {:>10}", grouped(counts.duplicates)),
        format!("retries             {:>10}", grouped(counts.retries)),
        format!("dead letters        {:>10}", grouped(totals.dead_letters.values().sum())),
    ];
    let reasons = totals.dead_letters.iter();
    lines.extend(reasons.map(|(reason, count)| format!("  {reason:<17} {:>10}", grouped(*count))));
    lines.push(format!("CDs sold            {:>10}", grouped(totals.cds)));
    lines.push(format!("charged             {:>10} USD", dollars(totals.amount_cents)));
    lines.join("\n")
}

fn dollars(cents: u64) -> String {
    format!("{}.{:02}", grouped(cents / 100), cents % 100)
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}
