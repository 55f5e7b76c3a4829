//! Whether each payment has taken effect once, or not at all and has a letter.

use std::collections::{BTreeMap, BTreeSet};

use super::input::{self, Payment};

/// What the database says.
pub struct Snapshot {
    /// What mqguard knows of each payment.
    pub records: BTreeMap<i64, Record>,
    /// The reasons of a payment's letters.
    pub letters: BTreeMap<i64, Vec<String>>,
    /// The payment of each transfer.
    pub transfers: Vec<i64>,
    /// Of the accounts, in their order.
    pub balances: Vec<i64>,
}

/// A record: its state, and which run of the message is the next or was the last.
pub struct Record {
    pub state: State,
    pub generation: i64,
    pub step: i64,
    /// Runs that were cut short by the end of their process.
    pub crashes: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Success,
    /// Failed, and its letter is out.
    Failed,
    /// To be run, being run, or its letter is owed.
    Unsettled,
}

impl State {
    pub fn named(name: &str) -> Self {
        match name {
            "success" => Self::Success,
            "failed" => Self::Failed,
            _ => Self::Unsettled,
        }
    }
}

/// What the books say of the payments.
#[derive(Default)]
pub struct Audit {
    pub transferred: u64,
    pub moved_cents: i64,
    pub held_cents: i64,
    /// Payments with a letter, by its reason.
    pub dead: BTreeMap<String, u64>,
    /// Letters beyond the first of a payment: a crash may leave them.
    pub repeated_letters: u64,
    /// Runs that were cut short by the end of their process.
    pub cut_short: i64,
    /// What is not as it must be.
    pub problems: Vec<String>,
}

/// A letter of a payment that was being made in four workers when they were killed. It may be innocent, but it is not made.
const CRASH_LOOP: &str = "crash-loop";

pub fn audit(payments: &[Payment], books: &Snapshot) -> Audit {
    let mut audit = Audit { held_cents: books.balances.iter().sum(), ..Audit::default() };
    let mut transfers = BTreeMap::<i64, u64>::new();
    for payment in &books.transfers {
        *transfers.entry(*payment).or_default() += 1;
    }
    let mut without_effect = BTreeSet::new();
    for payment in payments {
        let times = transfers.remove(&payment.id).unwrap_or_default();
        let letters = books.letters.get(&payment.id).map_or(&[][..], Vec::as_slice);
        audit.payment(payment, times, letters, books.records.get(&payment.id).map(|record| record.state));
        if payment.is_over_limit() || letters.iter().any(|reason| reason == CRASH_LOOP) {
            without_effect.insert(payment.id);
        }
    }
    audit.problems.extend(transfers.keys().map(|payment| format!("payment-{payment}: transferred, and nobody has ordered it")));
    audit.balances(payments, &without_effect, &books.balances);
    audit.cut_short = books.records.values().map(|record| record.crashes).sum();
    audit
}

impl Audit {
    fn payment(&mut self, payment: &Payment, times: u64, letters: &[String], record: Option<State>) {
        self.transferred += times;
        self.moved_cents += times.cast_signed() * payment.cents;
        if let Some(reason) = letters.first() {
            *self.dead.entry(reason.clone()).or_default() += 1;
        }
        self.repeated_letters += (letters.len() as u64).saturating_sub(1);
        let is_due = |reason: &String| reason == CRASH_LOOP || (reason == "fatal" && payment.is_over_limit());
        let is_well = match (times, letters, record) {
            (1, [], Some(State::Success)) => !payment.is_over_limit(),
            (0, [_, ..], Some(State::Failed)) => letters.iter().all(is_due),
            _ => false,
        };
        if !is_well {
            let over = if payment.is_over_limit() { ", and is over the limit" } else { "" };
            let letters = if letters.is_empty() { "none".to_owned() } else { letters.join(", ") };
            self.problems
                .push(format!("payment-{}: transferred {times} times{over}; letters: {letters}; record: {record:?}", payment.id));
        }
    }

    fn balances(&mut self, payments: &[Payment], without_effect: &BTreeSet<i64>, held: &[i64]) {
        let due = input::balances(payments, without_effect);
        let total: i64 = due.values().sum();
        if self.held_cents != total {
            self.problems.push(format!("all accounts hold {} cents together, not {total}", self.held_cents));
        }
        if held.len() != due.len() {
            self.problems.push(format!("there are {} accounts, not {}", held.len(), due.len()));
        }
        let wrong = due.iter().zip(held).filter(|((_, due), held)| due != held);
        self.problems.extend(wrong.map(|((account, due), held)| format!("account {account} holds {held} cents, not {due}")));
    }
}
