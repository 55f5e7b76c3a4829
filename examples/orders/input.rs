//! The orders, and what must come of them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The first 5,000 orders of the CDNOW data set; see data/README.md.
const BUNDLED: &str = include_str!("data/cdnow-5000.csv");

/// An order, as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub order_id: u64,
    pub customer: u64,
    pub date: String,
    pub cds: u64,
    pub amount_cents: u64,
}

impl Order {
    /// The id under which an order is published, each time.
    pub fn message_id(&self) -> String {
        format!("cdnow-{}", self.order_id)
    }

    /// Producers publish some things twice: here every 20th.
    pub fn is_published_twice(&self) -> bool {
        self.order_id.is_multiple_of(20)
    }

    /// How often charging it fails before it succeeds: every 10th once, every 100th twice.
    pub fn failures(&self) -> u32 {
        match self.order_id {
            id if id.is_multiple_of(100) => 2,
            id if id.is_multiple_of(10) => 1,
            _ => 0,
        }
    }
}

/// Reads the bundled orders, or a CSV file of the same form.
pub fn read(path: Option<&Path>) -> Result<Vec<Order>, String> {
    match path {
        None => parse(BUNDLED).map_err(|problem| format!("bundled data: {problem}")),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))
        }
    }
}

fn parse(text: &str) -> Result<Vec<Order>, String> {
    let rows = text.lines().skip(1).zip(1..);
    rows.map(|(line, n)| parse_row(line, n).ok_or_else(|| format!("row {n}: `{line}` is not customer,date,cds,amount_usd")))
        .collect()
}

fn parse_row(line: &str, order_id: u64) -> Option<Order> {
    let [customer, date, cds, amount] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
    let (dollars, cents) = amount.split_once('.').filter(|(_, cents)| cents.len() == 2)?;
    let amount_cents = dollars.parse::<u64>().ok()? * 100 + cents.parse::<u64>().ok()?;
    Some(Order { order_id, customer: customer.parse().ok()?, date: date.to_owned(), cds: cds.parse().ok()?, amount_cents })
}

/// The totals of what was done, or of what must be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    pub processed: u64,
    pub dead_letters: BTreeMap<&'static str, u64>,
    pub cds: u64,
    pub amount_cents: u64,
}

pub const NOTHING_TO_CHARGE: &str = "nothing to charge";
pub const EXHAUSTED: &str = "exhausted";

/// What must come of these orders.
pub fn expected(orders: &[Order]) -> Totals {
    let charged = orders.iter().filter(|order| order.amount_cents > 0);
    let free = orders.iter().filter(|order| order.amount_cents == 0).count() as u64;
    Totals {
        processed: orders.len() as u64 - free,
        dead_letters: if free > 0 { BTreeMap::from([(NOTHING_TO_CHARGE, free)]) } else { BTreeMap::new() },
        cds: charged.clone().map(|order| order.cds).sum(),
        amount_cents: charged.map(|order| order.amount_cents).sum(),
    }
}
