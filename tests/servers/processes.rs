//! `orders` in one process and in several, which end as they should or are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::client::Letter;
use crate::process::{BUNDLED, Orders, PATIENCE, Summary};
use crate::support::{Database, Vhost, count_records, records, until};

pub(crate) const QUEUE: &str = "order.process";
pub(crate) const DLQ: &str = "dlq.order.process.fail";

/// A virtual host and a database, and `orders` on them.
struct Shop {
    vhost: Vhost,
    database: Database,
}

impl Shop {
    fn new() -> Self {
        Self { vhost: Vhost::new(), database: Database::new() }
    }

    fn orders(&self, arguments: &[&str]) -> Orders {
        let (broker, store) = (self.vhost.url(), self.database.url());
        Orders::start(&[&["--broker", &broker, "--store", &store, "--json"], arguments].concat())
    }

    fn publish(&self) {
        let summary = self.orders(&["--publish-only"]).ended(PATIENCE).summary();
        assert_eq!((summary.published, summary.repeats, summary.totals()), (5_000, 250, [0; 4]));
    }

    /// Waits until this many orders were begun.
    fn wait_for_records(&self, count: i64) {
        let mut client = self.database.client();
        until("orders are processed", || count_records(&mut client) >= count);
    }

    /// Every order has ended in exactly one way, by what Redis and the dead-letter queue say, and nothing is left anywhere.
    fn assert_all_ended(&self) {
        let records = records(&mut self.database.client());
        assert_eq!(records.len(), 5_000);
        let in_state = |state: &str| -> BTreeSet<&str> {
            records.iter().filter(|(_, record)| record["state"] == state).map(|(id, _)| id.as_str()).collect()
        };
        let (succeeded, failed) = (in_state("success"), in_state("failed"));
        assert_eq!((succeeded.len(), failed.len()), (4_991, 9));
        let owed = records.values().filter(|record| record.get("letter").is_some_and(|letter| letter == "owed")).count();
        assert_eq!(owed, 0, "letters that are still owed");
        self.vhost.until_only_duplicates_were_left(&self.database.url(), &[DLQ]);
        if let Some(letters) = Letter::all(&self.vhost, DLQ) {
            let dead: BTreeSet<&str> = letters.iter().map(|letter| letter.message_id.as_str()).collect();
            assert_eq!(dead, failed);
            assert!(letters.iter().all(|letter| letter.header("mqguard-reason") == "fatal"), "{letters:?}");
        }
    }
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn the_totals_are_those_of_the_embedded_ones() {
    let shop = Shop::new();
    let summary = shop.orders(&[]).ended(PATIENCE).summary();
    summary.assert_adds_up();
    assert_eq!(summary.duplicates, 250, "{summary:?}");
    shop.assert_all_ended();
    eprintln!("orders on RabbitMQ and Redis: {} ms", summary.elapsed_ms);
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn publishing_and_consuming_are_two_processes() {
    let shop = Shop::new();
    shop.publish();
    let summary = shop.orders(&["--consume-only", "--expect", "5000"]).ended(PATIENCE).summary();
    assert_eq!((summary.totals(), summary.published), (BUNDLED, 0));
    assert_eq!(summary.duplicates, 250, "{summary:?}");
    shop.assert_all_ended();
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn more_than_was_expected_does_not_add_up() {
    let shop = Shop::new();
    shop.publish();
    let ended = shop.orders(&["--consume-only", "--expect", "10"]).ended(PATIENCE);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the totals do not add up"), "{ended:?}");
}

/// SIGTERM lets the handlers that run end, and hands back the rest: nothing is lost, and nothing runs twice.
#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn sigterm_in_the_middle_loses_nothing() {
    let shop = Shop::new();
    shop.publish();
    let first = shop.orders(&["--consume-only"]);
    shop.wait_for_records(1_000);
    first.signal("TERM");
    let told = Instant::now();
    let first = first.ended(PATIENCE).summary();
    let took = told.elapsed();
    assert!(took < Duration::from_secs(10), "it took {took:?} to end");
    let done = first.processed + first.letters();
    assert!((1..5_000).contains(&done), "it was to end in the middle: {first:?}");
    let rest = (5_000 - done).to_string();
    let second = shop.orders(&["--consume-only", "--expect", &rest]).ended(PATIENCE).summary();
    let sum: Vec<u64> = first.totals().into_iter().zip(second.totals()).map(|(one, other)| one + other).collect();
    assert_eq!(sum, BUNDLED);
    // Acknowledgements are not answered: the broker may deliver again what was among the last, which is a duplicate then.
    assert!((250..=450).contains(&(first.duplicates + second.duplicates)), "{first:?} {second:?}");
    shop.assert_all_ended();
    eprintln!("ended {took:?} after SIGTERM, with {done} of 5000 orders done");
}

/// What a process charged: how often each order, by its ledger, which outlives it.
struct Ledger(PathBuf);

impl Ledger {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("mqguard-ledger-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// Each order that was charged once, with CDs and cents; none may be there twice.
    fn charges(&self) -> BTreeMap<u64, (u64, u64)> {
        let text = std::fs::read_to_string(&self.0).unwrap();
        let mut charges = BTreeMap::new();
        for line in text.lines() {
            let [order, cds, cents] = line.split(',').map(|field| field.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
            assert_eq!(charges.insert(order, (cds, cents)), None, "order {order} was charged twice by one process");
        }
        charges
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// Two processes share the queue, one is killed. What it had begun is run again by the other once the leases have lapsed; what it had
/// finished is not.
#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn a_killed_process_loses_nothing() {
    const PREFETCH: usize = 200;
    let shop = Shop::new();
    shop.publish();
    let ledgers = [Ledger::new("survivor"), Ledger::new("killed")];
    let [survivor, killed] = ledgers.each_ref().map(|ledger| shop.orders(&["--consume-only", "--ledger", ledger.path()]));
    shop.wait_for_records(2_000);
    killed.signal("KILL");
    let killed = killed.ended(PATIENCE);
    assert_eq!((killed.status.code(), killed.stdout.as_str()), (None, ""));
    let begun = count_records(&mut shop.database.client());
    assert!(begun < 5_000, "it was to be killed in the middle");

    let mut client = shop.database.client();
    until("every order has ended", || {
        count_records(&mut client) == 5_000
            && records(&mut client).values().all(|record| match record["state"].as_str() {
                "success" => true,
                "failed" => record["letter"] == "out",
                _ => false,
            })
    });
    // Copies of busy messages may still wait.
    shop.vhost.until_no_backlog(&[DLQ]);
    survivor.signal("TERM");
    let survivor: Summary = survivor.ended(PATIENCE).summary();
    shop.assert_all_ended();

    let [by_survivor, by_killed] = ledgers.each_ref().map(Ledger::charges);
    assert!(by_survivor.len() > 100 && by_killed.len() > 100, "{} and {}", by_survivor.len(), by_killed.len());
    let twice: Vec<u64> = by_killed.keys().filter(|order| by_survivor.contains_key(order)).copied().collect();
    // Charged, and killed before that was recorded: only what was out at the moment of death.
    assert!(twice.len() <= PREFETCH, "{} orders were charged by both", twice.len());
    let charged: BTreeMap<u64, (u64, u64)> =
        by_survivor.iter().chain(&by_killed).map(|(&order, &charge)| (order, charge)).collect();
    let sum = |of: fn(&(u64, u64)) -> u64, charges: &BTreeMap<u64, (u64, u64)>| charges.values().map(of).sum::<u64>();
    let totals = |charges| [sum(|charge| charge.0, charges), sum(|charge| charge.1, charges)];
    assert_eq!((charged.len() as u64, totals(&charged)), (BUNDLED[0], [BUNDLED[2], BUNDLED[3]]));
    // The survivor's own account agrees with its ledger.
    assert_eq!((survivor.processed, [survivor.cds, survivor.amount_cents]), (by_survivor.len() as u64, totals(&by_survivor)));
    eprintln!("killed after {} charges; {} by the survivor, {} of them by both", by_killed.len(), by_survivor.len(), twice.len());
}
