//! The example `orders` with everything in its own process: the totals, and what it says when they are not right.

#![cfg(all(feature = "rabbitmq", unix))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "orders/process.rs"]
mod process;

use process::{Orders, PATIENCE};

/// A CSV file that is removed when this is dropped.
struct Csv(std::path::PathBuf);

impl Csv {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mqguard-orders-{}-{name}.csv", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Csv {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

#[test]
fn the_totals_add_up() {
    let ended = Orders::run(&["--json"]);
    let summary = ended.summary();
    summary.assert_adds_up();
    // With nothing lost there are no more duplicates than repeats, and every 10th order is retried, every 100th twice: of those, the
    // ones over nothing are not.
    assert_eq!((summary.duplicates, summary.retries), (250, 550 - free_orders_that_would_be_retried()), "{summary:?}");
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
    assert_eq!(ended.stderr, "");
}

fn free_orders_that_would_be_retried() -> u64 {
    let data = include_str!("../examples/orders/data/cdnow-5000.csv");
    let free = data.lines().skip(1).zip(1u64..).filter(|(line, _)| line.ends_with(",0.00"));
    free.map(|(_, id)| u64::from(id % 10 == 0) + u64::from(id % 100 == 0)).sum()
}

#[test]
fn a_person_reads_the_same() {
    let ended = Orders::run(&[]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    for figure in ["5,000   and 250 of them twice", "4,991   in", "nothing to charge          9", "12,253", "184,441.61 USD"] {
        assert!(ended.stdout.contains(figure), "no `{figure}` in\n{}", ended.stdout);
    }
}

#[test]
fn other_orders_have_other_totals() {
    let csv = Csv::new("other", "customer,date,cds,amount_usd\n1,1997-01-01,2,20.50\n2,1997-01-02,1,0.00\n1,1997-01-03,3,1.05\n");
    let summary = Orders::run(&["--json", "--input", csv.path()]).summary();
    assert_eq!((summary.published, summary.repeats, summary.totals()), (3, 0, [2, 1, 5, 2_155]));
}

#[test]
fn every_charge_is_in_the_ledger_once() {
    let ledger = Csv::new("ledger", "");
    Orders::run(&["--json", "--ledger", ledger.path()]).summary().assert_adds_up();
    let text = std::fs::read_to_string(ledger.path()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4_991);
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 4_991);
    let sum = |column: usize| lines.iter().map(|line| line.split(',').nth(column).unwrap().parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!((sum(1), sum(2)), (12_253, 18_444_161));
}

/// Nobody publishes to an embedded broker but the process itself: it waits, and ends short of what it was to expect.
#[test]
#[cfg(target_os = "linux")]
fn totals_that_do_not_add_up_are_a_failure() {
    let mut orders = Orders::start(&["--consume-only", "--expect", "3", "--json"]);
    orders.wait_until_it_handles_sigterm();
    orders.signal("TERM");
    let ended = orders.ended(PATIENCE);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the totals do not add up"), "{ended:?}");
    assert_eq!(ended.summary_in_any_case().processed, 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_consumer_that_expects_nothing_ends_well_when_told_to() {
    let mut orders = Orders::start(&["--consume-only"]);
    orders.wait_until_it_handles_sigterm();
    orders.signal("INT");
    assert_eq!(orders.ended(PATIENCE).status.code(), Some(0));
}

#[test]
fn mistakes_in_the_options_are_told() {
    let missing = std::env::temp_dir().join("mqguard-no-such-directory").join("file");
    let missing = missing.to_str().unwrap();
    let csv = Csv::new("broken", "customer,date,cds,amount_usd\n1,1997-01-01,2,20.50\n2,1997-01-02,one,0.00\n");
    let cases: [(&[&str], &[&str]); 10] = [
        (&["--expect", "5"], &["--consume-only"]),
        (&["--publish-only", "--consume-only"], &["cannot be used with"]),
        (&["--expect", "many", "--consume-only"], &["'many'", "--expect"]),
        (&["--colour"], &["--colour", "Usage"]),
        (&["--input", missing], &[missing, "No such file"]),
        (&["--ledger", missing], &[missing, "No such file"]),
        (&["--input", csv.path()], &[csv.path(), "row 2", "2,1997-01-02,one,0.00"]),
        (&["--broker", "kafka://u:hunter2@host"], &["no broker for `kafka:` URLs", "amqp://user:password@host:5672/vhost"]),
        (&["--broker", "localhost"], &["has no scheme", "amqp://"]),
        (&["--broker", "amqp://u:hun/ter2@host/v"], &["URL"]),
    ];
    for (arguments, parts) in cases {
        let ended = Orders::run(arguments);
        let complaint = ended.complaint();
        for part in parts {
            assert!(complaint.contains(part), "{arguments:?}: no `{part}` in {complaint}");
        }
        assert!(!complaint.contains("hun") && !complaint.contains("ter2"), "{arguments:?}: {complaint}");
        assert_eq!(ended.stdout, "", "{arguments:?}");
    }
}
