//! The payments, and what must come of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Accounts are numbered from 1.
pub const ACCOUNTS: i64 = 100;
/// What each holds at first.
pub const OPENING_CENTS: i64 = 1_000_000;
/// Payments of more than this are refused.
pub const LIMIT_CENTS: i64 = 100_000;

/// A payment, as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payment {
    pub id: i64,
    pub from: i64,
    pub to: i64,
    pub cents: i64,
}

impl Payment {
    /// The id under which a payment is published, each time.
    pub fn message_id(&self) -> String {
        format!("payment-{}", self.id)
    }

    /// Producers publish some things twice: here every 20th.
    pub fn is_published_twice(&self) -> bool {
        self.id % 20 == 0
    }

    /// Every 10th fails at first, with its money already moved.
    pub fn fails_at_first(&self) -> bool {
        self.id % 10 == 0
    }

    pub fn is_over_limit(&self) -> bool {
        self.cents > LIMIT_CENTS
    }
}

/// So many payments, the same each time; every 100th is over the limit.
pub fn made_up(count: i64) -> Vec<Payment> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut payment = |id| {
        let from = random.i64(1..=ACCOUNTS);
        // Any account but that one.
        let to = (from - 1 + random.i64(1..ACCOUNTS)) % ACCOUNTS + 1;
        let cents = random.i64(1..=LIMIT_CENTS / 10) + if id % 100 == 0 { LIMIT_CENTS } else { 0 };
        Payment { id, from, to, cents }
    };
    (1..=count).map(&mut payment).collect()
}

/// Reads a CSV file of from,to,cents.
pub fn read(path: &Path) -> Result<Vec<Payment>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let rows = text.lines().skip(1).zip(1..);
    rows.map(|(line, id)| {
        let what = format!("from,to,cents with two accounts of 1 to {ACCOUNTS}");
        parse_row(line, id).ok_or_else(|| format!("{}: row {id}: `{line}` is not {what}", path.display()))
    })
    .collect()
}

fn parse_row(line: &str, id: i64) -> Option<Payment> {
    let numbers: Option<Vec<i64>> = line.split(',').map(|field| field.parse().ok()).collect();
    let [from, to, cents] = numbers?.try_into().ok()?;
    let are_accounts = [from, to].iter().all(|account| (1..=ACCOUNTS).contains(account));
    (are_accounts && from != to && cents > 0).then_some(Payment { id, from, to, cents })
}

/// What the accounts must hold after these payments but for some: a replay in memory, one after the other.
pub fn balances(payments: &[Payment], without: &BTreeSet<i64>) -> BTreeMap<i64, i64> {
    let mut balances: BTreeMap<i64, i64> = (1..=ACCOUNTS).map(|account| (account, OPENING_CENTS)).collect();
    for payment in payments.iter().filter(|payment| !without.contains(&payment.id)) {
        *balances.entry(payment.from).or_default() -= payment.cents;
        *balances.entry(payment.to).or_default() += payment.cents;
    }
    balances
}
