//! Several processes at the same time: what one loses, another gets.

use std::collections::HashMap;

use mqguard::MemoryStore;
use mqguard::testing::{CrashTest, Fault, Invariant, Report, TraceLine};

use super::wrong::{AckingBroker, Refused, RefusingStore};
use crate::{Act, Bank, all_charged, assert_thorough, none_charged, pairs, test};

#[tokio::test(start_paused = true)]
async fn success_with_a_duplicate() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Succeed), ("m-1", Act::Succeed)];
    let check = || all_charged(&bank, &["m-1"]);
    let report = test(&bank, &messages).processes(2).check(check).most_pairs(pairs(1200)).run().await;
    assert_thorough(&report, 60, 1200);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_while_the_first_runs_long() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Last), ("m-1", Act::Last)];
    let check = || all_charged(&bank, &["m-1"]);
    let report = test(&bank, &messages).processes(2).check(check).most_pairs(pairs(600)).run().await;
    assert_thorough(&report, 150, 600);
}

#[tokio::test(start_paused = true)]
async fn two_failures_and_a_success() {
    let bank = Bank::default();
    let check = || all_charged(&bank, &["m-1"]);
    let report = test(&bank, &[("m-1", Act::FailTwice)]).processes(2).check(check).most_pairs(pairs(1200)).run().await;
    assert_thorough(&report, 80, 1200);
}

#[tokio::test(start_paused = true)]
async fn fatal() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Refuse), ("m-1", Act::Refuse)];
    let report = test(&bank, &messages).processes(2).check(|| none_charged(&bank)).most_pairs(pairs(600)).run().await;
    assert_thorough(&report, 60, 600);
}

#[tokio::test(start_paused = true)]
async fn chains_of_faults() {
    let bank = Bank::default();
    let messages = [("m-1", Act::Last), ("m-1", Act::Last), ("m-2", Act::FailTwice), ("m-3", Act::RefuseOnce)];
    let report = test(&bank, &messages).processes(3).chains(80).run().await;
    assert_thorough(&report, 200, 0);
    assert!(report.chained >= 350, "{report}");
}

/// A fault at one process leaves the others their deliveries.
#[tokio::test(start_paused = true)]
async fn only_the_process_at_fault_dies_or_is_cut_off() {
    let bank = Bank::default();
    let messages: Vec<(&str, Act)> = ["m-1", "m-2", "m-3", "m-4"].map(|id| (id, Act::Last)).into();
    for fault in [Fault::CrashAfter, Fault::ConnectionLostAfter] {
        let clean = test(&bank, &messages).processes(2).only([]).run().await;
        let claims = steps_of(&clean, "claim of charge/m-");
        let (step, hit) = (number(claims[3]), claims[3].process);
        let of_others = claims.iter().filter(|line| line.process != hit).count();
        assert!(of_others > 0, "{clean}");
        let report = test(&bank, &messages).processes(2).only([(step, fault)]).run().await;
        report.assert_clean();
        let mut claimed: HashMap<&str, usize> = HashMap::new();
        for line in steps_of(&report, "claim of charge/m-").iter().filter(|line| line.outcome.contains("Granted")) {
            *claimed.entry(&line.what).or_default() += 1;
        }
        let of_the_others = claims.iter().filter(|line| line.process != hit).map(|line| claimed[line.what.as_str()]);
        assert!(of_the_others.clone().all(|count| count == 1), "{fault:?}: {claimed:?}\n{:#?}", report.trace());
    }
}

fn steps_of<'a>(report: &'a Report, what: &str) -> Vec<&'a TraceLine> {
    report.trace().iter().filter(|line| line.step.is_some() && line.what.starts_with(what)).collect()
}

fn number(line: &TraceLine) -> usize {
    line.step.map_or(0, |(number, _)| number)
}

/// One process claims late, when its delivery has long gone to the other, and dies; the other's success comes later still and is refused.
/// Nobody has the message then but that other one: to acknowledge it would lose it.
async fn refused_and_nobody_else_has_it<'a>(test: impl Fn() -> CrashTest<'a>) -> Report {
    let clean = test().only([]).run().await;
    let claim = steps_of(&clean, "claim of charge/m-1")[0];
    let late = claim.process;
    let mut faults = vec![(number(claim), Fault::LeaseLapsedBefore)];

    let report = test().only(faults.clone()).run().await;
    let of_late = |line: &&&TraceLine| line.process == late;
    let acks = steps_of(&report, "ack to charge");
    faults.push((number(acks.iter().find(of_late).unwrap()), Fault::ConnectionLostAfter));

    let report = test().only(faults.clone()).run().await;
    let completes = steps_of(&report, "complete of charge/m-1");
    faults.push((number(completes.iter().find(|line| line.process != late).unwrap()), Fault::LeaseLapsedBefore));

    let report = test().only(faults.clone()).run().await;
    let completes = steps_of(&report, "complete of charge/m-1");
    faults.push((number(completes.iter().find(of_late).unwrap()), Fault::CrashBefore));

    let report = test().only(faults).run().await;
    assert_eq!(report.unreached, 0, "{report}");
    let outcomes: Vec<&str> = steps_of(&report, "complete of charge/m-1").iter().map(|line| line.outcome.as_str()).collect();
    assert!(outcomes.contains(&"Ok(Refused)"), "{outcomes:?}\n{:#?}", report.trace());
    report
}

const SEVERAL: [(&str, Act); 4] = [("m-1", Act::Succeed), ("m-2", Act::Succeed), ("m-3", Act::Succeed), ("m-4", Act::Succeed)];

#[tokio::test(start_paused = true)]
async fn a_refused_success_is_not_acknowledged() {
    let bank = Bank::default();
    let test = || test(&bank, &SEVERAL).processes(2).check(|| all_charged(&bank, &["m-1", "m-2", "m-3", "m-4"]));
    refused_and_nobody_else_has_it(test).await.assert_clean();
}

#[tokio::test(start_paused = true)]
async fn who_acknowledges_what_was_refused_is_found_out() {
    let (bank, refused) = (Bank::default(), Refused::default());
    let test = || {
        let (of_store, of_broker) = (refused.clone(), refused.clone());
        test(&bank, &SEVERAL)
            .processes(2)
            .reset(|| refused.lock().unwrap().clear())
            .store(move || RefusingStore(MemoryStore::new(), of_store.clone()))
            .broker(move |queues| AckingBroker(queues, of_broker.clone()))
    };
    let report = refused_and_nobody_else_has_it(test).await;
    let found: Vec<(Invariant, &str)> =
        report.violations().iter().map(|violation| (violation.invariant, violation.detail.as_str())).collect();
    assert_eq!(found, [(Invariant::NothingLost, "`charge/m-1` has neither succeeded nor left a dead letter")], "{report}");
}
