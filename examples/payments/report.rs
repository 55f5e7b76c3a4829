//! What is shown: progress while it runs, and the summary.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use serde_json::json;

use super::audit::Audit;
use super::bank::Books;
use super::worker::{LOOK, Tally};

/// What was done, and how.
pub struct Summary<'a> {
    pub payments: u64,
    pub repeats: u64,
    pub elapsed: Duration,
    pub audit: &'a Audit,
    pub how: How,
}

pub enum How {
    Plain(Tally),
    /// What killed workers counted is gone with them.
    Chaos {
        kills: u32,
        seed: u64,
    },
}

/// Shows live progress on a terminal, and nothing elsewhere, until dropped by its caller.
pub async fn progress(books: &Books, payments: usize) {
    if !std::io::stderr().is_terminal() {
        return std::future::pending().await;
    }
    let started = Instant::now();
    loop {
        tokio::time::sleep(LOOK * 2).await;
        let ended = books.count_ended().await.unwrap_or_default();
        let seconds = started.elapsed().as_secs_f32();
        let mut terminal = std::io::stderr().lock();
        let line = format!("\r{seconds:5.1} s   ended {:>7} of {}", grouped(ended as u64), grouped(payments as u64));
        // A terminal that is gone has nobody to tell.
        let _ = write!(terminal, "{line}").and_then(|()| terminal.flush());
    }
}

/// Ends the line of progress.
pub fn end_progress() {
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
}

impl Summary<'_> {
    /// As one line of JSON.
    pub fn json(&self) -> String {
        let audit = self.audit;
        let mut summary = json!({
            "payments": self.payments,
            "repeats": self.repeats,
            "transferred": audit.transferred,
            "dead_letters": audit.dead,
            "repeated_letters": audit.repeated_letters,
            "cut_short": audit.cut_short,
            "moved_cents": audit.moved_cents,
            "held_cents": audit.held_cents,
            "problems": audit.problems,
            "elapsed_ms": u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX),
        });
        match &self.how {
            How::Plain(tally) => {
                summary["duplicates"] = tally.duplicates().into();
                summary["retries"] = tally.retries().into();
            }
            How::Chaos { kills, seed } => {
                summary["kills"] = (*kills).into();
                summary["seed"] = (*seed).into();
            }
        }
        summary.to_string()
    }

    /// For a person.
    pub fn text(&self) -> String {
        let audit = self.audit;
        let mut lines = vec![
            format!("published           {:>10}   and {} of them twice", grouped(self.payments), grouped(self.repeats)),
            format!("transferred         {:>10}   in {:.1} s", grouped(audit.transferred), self.elapsed.as_secs_f32()),
        ];
        match &self.how {
            How::Plain(tally) => {
                lines.push(format!("duplicates skipped  {:>10}", grouped(tally.duplicates())));
                lines.push(format!("retries             {:>10}", grouped(tally.retries())));
            }
            How::Chaos { kills, seed } => {
                lines.push(format!("kills               {:>10}   by --seed {seed}", grouped(u64::from(*kills))));
                lines.push(format!("payments cut short  {:>10}", grouped(audit.cut_short.unsigned_abs())));
            }
        }
        lines.push(format!("dead letters        {:>10}", grouped(audit.dead.values().sum())));
        lines.extend(audit.dead.iter().map(|(reason, count)| format!("  {reason:<17} {:>10}", grouped(*count))));
        lines.push(format!("moved             {:>12} USD", dollars(audit.moved_cents)));
        lines.push(format!("in all accounts   {:>12} USD", dollars(audit.held_cents)));
        lines.join("\n")
    }
}

fn dollars(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", grouped(cents.unsigned_abs() / 100), cents.unsigned_abs() % 100)
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}
