//! The claim protocol, explored exhaustively: every order in which two workers can step through the deliveries of one message, with
//! every placement of the faults. The records are changed by the functions that the memory store runs.
//!
//! What is not modelled: time (a retry's delay, a record's retention) and more than one message; records of messages do not meet.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

#[path = "claim_model/faults.rs"]
mod faults;
#[path = "claim_model/model.rs"]
mod model;
#[path = "claim_model/property.rs"]
mod property;
#[path = "claim_model/store.rs"]
mod store;
#[path = "claim_model/variant.rs"]
mod variant;
#[path = "claim_model/worker.rs"]
mod worker;
#[path = "claim_model/world.rs"]
mod world;

use std::time::Instant;

use faults::Faults;
use model::ClaimModel;
use stateright::{Checker, HasDiscoveries, Model};
use variant::Variant;

const PRODUCT: ClaimModel = ClaimModel {
    copies: 2,
    max_retries: 1,
    max_crashes: 1,
    faults: Faults::NONE,
    variant: Variant::Product,
    transactional: false,
};

/// Explores everything that can happen with these faults, and checks every property.
fn holds(faults: Faults) {
    explore(ClaimModel { faults, ..PRODUCT });
}

fn explore(model: ClaimModel) {
    let begun = Instant::now();
    let explored = model.checker().spawn_bfs().join();
    explored.assert_properties();
    let (states, seconds) = (explored.unique_state_count(), begun.elapsed().as_secs_f32());
    eprintln!("{states} states, {} steps deep, {seconds:.1} s: {:?}", explored.max_depth(), explored.model().faults);
}

/// Explores until the wrong variant has broken this property; the product with the same faults holds it.
fn breaks(variant: Variant, property: &'static str, faults: Faults) {
    holds(faults);
    let model = ClaimModel { faults, variant, ..PRODUCT };
    let explored = model.checker().finish_when(HasDiscoveries::AllOf([property].into())).spawn_bfs().join();
    let trace = explored.assert_any_discovery(property);
    eprintln!("{variant:?} breaks \"{property}\":\n{trace}");
}

#[test]
fn holds_with_crashes_a_lost_connection_and_a_replay() {
    holds(Faults { crashes: 2, losses: 1, replays: 1, ..Faults::NONE });
}

#[test]
fn holds_with_an_unknown_publish() {
    holds(Faults { crashes: 1, losses: 1, unknown_publishes: 1, ..Faults::NONE });
}

#[test]
fn holds_with_an_aborted_run() {
    holds(Faults { crashes: 1, aborts: 1, unknown_publishes: 1, replays: 1, ..Faults::NONE });
}

#[test]
fn holds_with_lost_answers_of_the_store() {
    holds(Faults { crashes: 1, lost_answers: 2, replays: 1, ..Faults::NONE });
}

#[test]
fn holds_with_owners_frozen_twice() {
    holds(Faults { crashes: 1, losses: 1, lapses: 2, ..Faults::NONE });
}

#[test]
fn holds_with_three_copies_and_with_more_retries() {
    let faults = Faults { crashes: 1, losses: 1, ..Faults::NONE };
    explore(ClaimModel { copies: 3, max_retries: 2, faults, ..PRODUCT });
}

#[test]
#[ignore = "takes 15 s: cargo xtask test"]
fn holds_with_a_frozen_owner_and_a_replay() {
    holds(Faults { crashes: 1, losses: 1, lapses: 1, replays: 1, ..Faults::NONE });
}

#[test]
#[ignore = "takes 25 s: cargo xtask test"]
fn holds_with_one_fault_of_each_kind() {
    let faults = Faults { crashes: 1, losses: 1, aborts: 1, unknown_publishes: 1, lost_answers: 1, lapses: 1, ..Faults::NONE };
    holds(faults);
}

#[test]
#[ignore = "takes 50 s: cargo xtask test"]
fn holds_with_crashes_a_lost_connection_an_unknown_publish_and_a_replay() {
    let faults = Faults { crashes: 2, losses: 1, unknown_publishes: 1, replays: 1, ..Faults::NONE };
    explore(ClaimModel { max_crashes: 2, faults, ..PRODUCT });
}

#[test]
fn holds_with_a_second_replay() {
    holds(Faults { crashes: 1, replays: 2, ..Faults::NONE });
}

#[test]
fn holds_with_transactions_that_are_undone_or_not_answered() {
    let faults = Faults { crashes: 1, lost_answers: 1, undone: 1, replays: 1, ..Faults::NONE };
    explore(ClaimModel { transactional: true, faults, ..PRODUCT });
}

#[test]
fn holds_with_transactions_of_owners_that_are_frozen() {
    let faults = Faults { crashes: 1, losses: 1, lapses: 1, undone: 1, ..Faults::NONE };
    explore(ClaimModel { transactional: true, faults, ..PRODUCT });
}

#[test]
fn committing_whatever_the_record_says_commits_twice() {
    breaks(Variant::CommitAnyway, property::EFFECTS, Faults { lapses: 1, ..Faults::NONE });
}

/// Replayed, a letter of an earlier generation has one that is dead-lettered already, and counts as a duplicate.
#[test]
fn a_letter_of_the_delivery_that_found_it_owed_loses_messages() {
    breaks(Variant::LetterOfDelivery, property::NOT_LOST, Faults { crashes: 1, replays: 2, ..Faults::NONE });
}

#[test]
fn releasing_before_the_copy_is_out_loses_messages() {
    breaks(Variant::ReleaseBeforeCopy, property::NOT_LOST, Faults { crashes: 1, ..Faults::NONE });
}

#[test]
fn publishing_the_letter_before_condemning_makes_a_success_and_a_letter() {
    breaks(Variant::LetterBeforeCondemn, property::NOT_BOTH, Faults { crashes: 1, ..Faults::NONE });
}

#[test]
fn acknowledging_what_is_busy_loses_messages() {
    breaks(Variant::AckBusy, property::NOT_LOST, Faults { crashes: 1, losses: 1, ..Faults::NONE });
}

#[test]
fn acknowledging_what_is_refused_loses_messages() {
    breaks(Variant::AckRefused, property::NOT_LOST, Faults { crashes: 1, losses: 1, lapses: 1, ..Faults::NONE });
}

#[test]
fn settling_without_comparing_the_owner_lets_a_stale_owner_settle() {
    breaks(Variant::SettleForAnyone, property::STALE_OWNER, Faults { lapses: 1, ..Faults::NONE });
}

#[test]
fn granting_an_older_turn_runs_too_often() {
    breaks(Variant::IgnoreTurns, property::RUNS, Faults::NONE);
}

#[test]
fn taking_a_live_lease_over_makes_two_owners() {
    breaks(Variant::IgnoreLeases, property::ONE_LEASE, Faults::NONE);
}

#[test]
fn not_counting_lapsed_leases_never_ends_a_crash_loop() {
    breaks(Variant::ForgetCrashes, property::CRASH_LOOP, Faults { crashes: 2, ..Faults::NONE });
}

#[test]
fn forgetting_a_success_grants_it_again() {
    breaks(Variant::ForgetSuccess, property::SUCCESS_IS_FINAL, Faults::NONE);
}
