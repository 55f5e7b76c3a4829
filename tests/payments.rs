//! The example `payments`: each payment is made exactly once, though its worker is killed again and again. And its audit: what a double
//! or a lost effect would look like.

#![cfg(all(feature = "sqlite", feature = "postgres", feature = "mysql", feature = "rabbitmq", unix))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[path = "../examples/payments/audit.rs"]
#[allow(dead_code, unreachable_pub, reason = "of the example, this needs a part")]
mod audit;
#[path = "payments/database.rs"]
mod database;
#[path = "../examples/payments/input.rs"]
#[allow(dead_code, unreachable_pub, reason = "of the example, this needs a part")]
mod input;
#[path = "payments/process.rs"]
mod process;

use std::collections::{BTreeMap, BTreeSet};

use audit::{Record, Snapshot, State, audit};
use database::Database;
use input::Payment;
use process::run;

#[test]
fn the_books_are_right() {
    let ended = run(&["--payments", "1000", "--json"]);
    let summary = ended.summary();
    summary.assert_exact(1_000, None);
    assert_eq!((summary.transferred, summary.moved_cents), (990, 4_815_946));
    // Every 10th is retried, but for those over the limit.
    assert_eq!((summary.duplicates, summary.retries), (Some(50), Some(90)), "{summary:?}");
    assert_eq!((ended.stdout.lines().count(), ended.stderr.as_str()), (1, ""));
}

#[test]
fn a_person_reads_the_same() {
    let ended = run(&["--payments", "200"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    for figure in ["200   and 10 of them twice", "198   in", "fatal                      2", "1,000,000.00 USD"] {
        assert!(ended.stdout.contains(figure), "no `{figure}` in\n{}", ended.stdout);
    }
}

#[test]
fn killed_workers_leave_the_books_right() {
    let summary = run(&["--payments", "400", "--chaos", "--kills", "5", "--json"]).summary();
    summary.assert_exact(400, Some(5));
    summary.tell("SQLite");
}

/// 50 kills, among so many payments that it takes about a minute.
fn chaos(what: &str, payments: u64, places: &[&str]) {
    let count = payments.to_string();
    let summary = run(&[&["--chaos", "--json", "--payments", &count], places].concat()).summary();
    summary.tell(what);
    summary.assert_exact(payments, Some(50));
}

#[test]
#[ignore = "takes minutes: cargo xtask test"]
fn fifty_kills_on_sqlite() {
    chaos("SQLite", 20_000, &[]);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn fifty_kills_on_postgres() {
    chaos("PostgreSQL", 5_000, &["--store", &Database::postgres().url()]);
}

#[test]
#[ignore = "needs MariaDB: cargo xtask test"]
fn fifty_kills_on_mariadb() {
    chaos("MariaDB", 10_000, &["--store", &Database::mariadb().url()]);
}

#[test]
fn mistakes_in_the_options_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let csv = directory.path().join("payments.csv");
    std::fs::write(&csv, "from,to,cents\n1,2,300\n2,2,300\n").unwrap();
    let cases: [(&[&str], &[&str]); 6] = [
        (&["--kills", "5"], &["--chaos"]),
        (&["--payments", "0"], &["--payments"]),
        (&["--payments", "5", "--input", csv.to_str().unwrap()], &["cannot be used with"]),
        (&["--input", csv.to_str().unwrap()], &["row 2", "2,2,300", "1 to 100"]),
        (&["--store", "redis://u:hunter2@host"], &["sqlite:FILE"]),
        (&["--payments", "1", "--broker", "kafka://u:hunter2@host"], &["no broker for `kafka:` URLs"]),
    ];
    for (arguments, parts) in cases {
        let ended = run(arguments);
        assert!(!ended.status.success() && ended.stdout.is_empty(), "{arguments:?}: {ended:?}");
        for part in parts {
            assert!(ended.stderr.contains(part), "{arguments:?}: no `{part}` in {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("hunter2"), "{arguments:?}: {}", ended.stderr);
    }
}

/// 100 payments, the last of which is over the limit, as they must be in the books.
fn made() -> (Vec<Payment>, Snapshot) {
    let payments = input::made_up(100);
    let record =
        |id| Record { state: if id == 100 { State::Failed } else { State::Success }, generation: 0, step: 0, crashes: 0 };
    let books = Snapshot {
        records: (1..=100).map(|id| (id, record(id))).collect(),
        letters: BTreeMap::from([(100, vec!["fatal".to_owned()])]),
        transfers: (1..=99).collect(),
        balances: input::balances(&payments, &BTreeSet::from([100])).into_values().collect(),
    };
    (payments, books)
}

/// The account of a payment's payer, in the books.
fn payer(payments: &[Payment], id: i64) -> usize {
    let payment = payments.iter().find(|payment| payment.id == id).unwrap();
    usize::try_from(payment.from - 1).unwrap()
}

#[test]
fn the_audit_finds_nothing_in_books_that_are_right() {
    let (payments, books) = made();
    assert_eq!(audit(&payments, &books).problems, [""; 0]);
}

#[test]
fn the_audit_finds_what_is_wrong() {
    type Wrong = fn(&[Payment], &mut Snapshot);
    let cases: [(&str, &str, Wrong); 9] = [
        ("a double", "payment-7: transferred 2 times", |_, books| books.transfers.push(7)),
        ("a loss", "payment-7: transferred 0 times", |_, books| books.transfers.retain(|id| *id != 7)),
        ("nobody's", "payment-700: ", |_, books| books.transfers.push(700)),
        ("a refused one", "payment-100: transferred 1 times", |_, books| books.transfers.push(100)),
        ("no letter", "payment-100: transferred 0 times", |_, books| books.letters.clear()),
        ("letter of a success", "payment-7: ", |_, books| drop(books.letters.insert(7, vec!["exhausted".into()]))),
        ("a record", "payment-7: ", |_, books| books.records.retain(|id, _| *id != 7)),
        ("money from nowhere", "all accounts hold 100000001 cents", |_, books| books.balances[0] += 1),
        ("a balance", " cents, not ", |payments, books| {
            let from = payer(payments, 7);
            books.balances[from] -= 5;
            books.balances[(from + 1) % 100] += 5;
        }),
    ];
    for (what, told, change) in cases {
        let (payments, mut books) = made();
        change(&payments, &mut books);
        let problems = audit(&payments, &books).problems;
        assert!(problems.iter().any(|problem| problem.contains(told)), "{what}: {problems:?}");
    }
}

/// What was being made in four workers when they were killed has a letter instead, and its money has not moved.
#[test]
fn the_audit_takes_a_crash_loop_for_what_it_is() {
    let (payments, mut books) = made();
    books.letters.insert(7, vec!["crash-loop".into()]);
    books.records.get_mut(&7).unwrap().state = State::Failed;
    books.transfers.retain(|id| *id != 7);
    books.balances = input::balances(&payments, &BTreeSet::from([7, 100])).into_values().collect();
    assert_eq!(audit(&payments, &books).problems, [""; 0]);
    books.transfers.push(7);
    assert_eq!(audit(&payments, &books).problems.len(), 1);
}
