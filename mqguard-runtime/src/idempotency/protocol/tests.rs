#![allow(clippy::unwrap_used, clippy::panic)]

use super::super::identity::Identity;
use super::*;

pub(super) const NOW: u64 = 1_000_000;
const LEASE: Duration = Duration::from_secs(30);
const TTL: Duration = Duration::from_hours(24);
pub(super) const ME: Owner = Owner(1);
const OTHER: Owner = Owner(2);
const BODY: Fingerprint = Fingerprint(7);

pub(super) fn turn(generation: u32, step: u32) -> Turn {
    Turn { generation, step }
}

fn identity() -> Identity {
    Identity::new("q", "", "1")
}

pub(super) fn ask(turn: Turn, owner: Owner) -> ClaimRequest {
    ClaimRequest { identity: identity(), turn, fingerprint: BODY, owner, lease: LEASE, ttl: TTL, max_crashes: 3 }
}

pub(super) fn hold(owner: Owner) -> Hold {
    Hold { identity: identity(), owner, ttl: TTL }
}

/// A record of somebody else at turn 1.1, with a lease that is alive.
pub(super) fn record(state: State) -> Record {
    let lease_until = if matches!(state, State::Processing | State::Failed) { NOW + 10_000 } else { 0 };
    let error = (state == State::Failed).then(|| "no stock".to_owned());
    Record {
        state,
        turn: turn(1, 1),
        fingerprint: Some(BODY),
        owner: Some(OTHER),
        lease_until,
        crashes: 2,
        error,
        lettered: false,
    }
}

fn lapsed(record: Record) -> Record {
    Record { lease_until: NOW, ..record }
}

fn lettered() -> Record {
    Record { lettered: true, lease_until: 0, error: None, ..record(State::Failed) }
}

/// What is stored when I am granted it.
fn granted(turn: Turn, crashes: u32) -> (Claim, Option<Record>) {
    let lease_until = NOW + 30_000;
    let record = Record {
        state: State::Processing,
        turn,
        fingerprint: Some(BODY),
        owner: Some(ME),
        lease_until,
        crashes,
        error: None,
        lettered: false,
    };
    (Claim::Granted { crashes }, Some(record))
}

/// What is stored when I am given the letter of turn 1.1.
fn owed(error: Option<&str>, crashes: u32) -> (Claim, Option<Record>) {
    let error = error.map(str::to_owned);
    let stored = Record { owner: Some(ME), lease_until: NOW + 30_000, crashes, error: error.clone(), ..record(State::Failed) };
    (Claim::Letter { generation: 1, error, crashes }, Some(stored))
}

const OLDER: [Turn; 2] = [Turn { generation: 1, step: 0 }, Turn { generation: 0, step: 9 }];
const LATER: [Turn; 3] = [Turn { generation: 1, step: 1 }, Turn { generation: 1, step: 2 }, Turn { generation: 2, step: 0 }];

pub(super) fn claim_of(record: &Record, turn: Turn) -> (Claim, Option<Record>) {
    claim(Some(record), &ask(turn, ME), NOW)
}

#[test]
fn none_is_granted() {
    assert_eq!(claim(None, &ask(turn(0, 0), ME), NOW), granted(turn(0, 0), 0));
    assert_eq!(claim(None, &ask(turn(3, 2), ME), NOW), granted(turn(3, 2), 0));
}

#[test]
fn pending_is_granted_from_its_turn_on_and_stale_before() {
    for pending in [record(State::Pending), Record { owner: None, ..record(State::Pending) }] {
        for turn in LATER {
            assert_eq!(claim_of(&pending, turn), granted(turn, 2));
        }
        for turn in OLDER {
            assert_eq!(claim_of(&pending, turn), (Claim::Stale, None));
        }
    }
}

#[test]
fn processing_is_busy_while_its_lease_lives_and_stale_for_an_older_turn() {
    for turn in LATER {
        assert_eq!(claim_of(&record(State::Processing), turn), (Claim::Busy { left: Duration::from_secs(10) }, None));
    }
    for turn in OLDER {
        assert_eq!(claim_of(&record(State::Processing), turn), (Claim::Stale, None));
        assert_eq!(claim_of(&lapsed(record(State::Processing)), turn), (Claim::Stale, None));
    }
}

#[test]
fn lapsed_processing_is_taken_over_with_one_crash_more() {
    for turn in LATER {
        assert_eq!(claim_of(&lapsed(record(State::Processing)), turn), granted(turn, 3));
    }
    // The end of the lease is its first moment without it.
    let last = Record { lease_until: NOW + 1, ..record(State::Processing) };
    assert_eq!(claim_of(&last, turn(1, 1)), (Claim::Busy { left: Duration::from_millis(1) }, None));
}

#[test]
fn one_crash_too_many_condemns() {
    let crashed = Record { crashes: 3, ..lapsed(record(State::Processing)) };
    for turn in LATER {
        assert_eq!(claim_of(&crashed, turn), owed(None, 4), "the record's turn stays, and there is no error");
    }
    let often = Record { crashes: u32::MAX, ..lapsed(record(State::Processing)) };
    assert_eq!(claim_of(&often, turn(1, 1)), owed(None, u32::MAX));
    let strict = ClaimRequest { max_crashes: 0, ..ask(turn(1, 1), ME) };
    assert_eq!(claim(Some(&Record { crashes: 0, ..crashed }), &strict, NOW), owed(None, 1));
}

#[test]
fn failed_with_its_letter_owed_is_busy_then_a_letter_whatever_the_turn_of_its_generation() {
    for turn in [turn(1, 1), turn(1, 2), turn(1, 0), turn(0, 0)] {
        assert_eq!(claim_of(&record(State::Failed), turn), (Claim::Busy { left: Duration::from_secs(10) }, None));
        assert_eq!(claim_of(&lapsed(record(State::Failed)), turn), owed(Some("no stock"), 2));
    }
}

#[test]
fn a_newer_generation_of_a_failed_message_starts_afresh() {
    for failed in [record(State::Failed), lapsed(record(State::Failed)), lettered()] {
        assert_eq!(claim_of(&failed, turn(2, 0)), granted(turn(2, 0), 0));
    }
}

#[test]
fn failed_with_its_letter_out_is_duplicate() {
    for turn in [turn(1, 1), turn(1, 9), turn(1, 0), turn(0, 0)] {
        assert_eq!(claim_of(&lettered(), turn), (Claim::Duplicate, None));
    }
}

#[test]
fn success_is_duplicate_whatever_the_turn() {
    for turn in [turn(1, 1), turn(1, 9), turn(0, 0), turn(7, 0)] {
        assert_eq!(claim_of(&record(State::Success), turn), (Claim::Duplicate, None));
    }
}

#[test]
fn another_body_is_a_conflict_where_the_same_would_be_stale_or_a_duplicate() {
    let other = |turn| ClaimRequest { fingerprint: Fingerprint(8), ..ask(turn, ME) };
    for (record, turn) in [
        (record(State::Success), turn(1, 1)),
        (lettered(), turn(1, 1)),
        (record(State::Pending), turn(1, 0)),
        (record(State::Processing), turn(0, 9)),
        (lapsed(record(State::Processing)), turn(1, 0)),
    ] {
        assert_eq!(claim(Some(&record), &other(turn), NOW), (Claim::Conflict, None), "{record:?}");
        let registered = Record { fingerprint: None, ..record.clone() };
        assert_eq!(claim(Some(&registered), &other(turn), NOW), claim_of(&record, turn), "not known before the first claim");
    }
    // Elsewhere the body of whoever runs counts.
    for record in [record(State::Pending), lapsed(record(State::Processing))] {
        let (answer, stored) = claim(Some(&record), &other(turn(1, 1)), NOW);
        assert_eq!((answer, stored.unwrap().fingerprint), (claim_of(&record, turn(1, 1)).0, Some(Fingerprint(8))));
    }
    let (_, owed) = claim(Some(&lapsed(record(State::Failed))), &other(turn(1, 1)), NOW);
    assert_eq!(owed.unwrap().fingerprint, Some(BODY), "the letter is of the message that failed");
}

#[test]
fn a_claim_repeated_by_its_owner_is_granted_again() {
    let (_, mine) = granted(turn(1, 1), 2);
    let later = NOW + 29_999;
    let (answer, stored) = claim(mine.as_ref(), &ask(turn(1, 1), ME), later);
    assert_eq!(answer, Claim::Granted { crashes: 2 });
    assert_eq!(stored.unwrap().lease_until, later + 30_000);
    // Not for another turn, and not once the lease has lapsed.
    assert!(matches!(claim(mine.as_ref(), &ask(turn(1, 2), ME), later).0, Claim::Busy { .. }));
    assert_eq!(claim(mine.as_ref(), &ask(turn(1, 0), ME), later).0, Claim::Stale);
    assert_eq!(claim(mine.as_ref(), &ask(turn(1, 1), ME), NOW + 30_000).0, Claim::Granted { crashes: 3 });
}

#[test]
fn a_letter_is_given_again_to_its_owner() {
    for (error, crashes) in [(None, 4), (Some("no stock"), 2)] {
        let (answer, mine) = owed(error, crashes);
        assert_eq!(claim(mine.as_ref(), &ask(turn(1, 1), ME), NOW), (answer, mine.clone()));
    }
}

/// The record as its owner leaves it: mine, at turn 1.1.
fn mine(state: State) -> Record {
    Record { owner: Some(ME), ..record(state) }
}

fn settle_of(record: &Record, step: &Step) -> (Settled, Option<Record>) {
    settle(Some(record), &hold(ME), step, NOW)
}

fn condemn(error: &str) -> Step {
    Step::Condemn { error: error.into(), lease: LEASE }
}

fn steps() -> [Step; 6] {
    let released = Step::Release { next: turn(1, 1) };
    [Step::Complete, released, Step::Release { next: turn(1, 2) }, condemn("late"), Step::Lettered, Step::Renew { lease: LEASE }]
}

#[test]
fn the_owner_of_a_processing_message_settles_it_even_when_its_lease_has_lapsed() {
    for processing in [mine(State::Processing), lapsed(mine(State::Processing))] {
        let idle = Record { lease_until: 0, ..processing.clone() };
        let renewed = Record { lease_until: NOW + 30_000, ..processing.clone() };
        for (step, stored) in [
            (Step::Complete, Record { state: State::Success, ..idle.clone() }),
            (Step::Release { next: turn(1, 2) }, Record { state: State::Pending, turn: turn(1, 2), ..idle.clone() }),
            (condemn("no stock"), Record { state: State::Failed, error: Some("no stock".into()), ..renewed.clone() }),
            (Step::Renew { lease: LEASE }, renewed),
        ] {
            assert_eq!(settle_of(&processing, &step), (Settled::Applied, Some(stored)));
        }
        assert_eq!(settle_of(&processing, &Step::Lettered), (Settled::Refused, None));
    }
}

#[test]
fn the_owner_of_a_letter_publishes_it_even_when_its_lease_has_lapsed() {
    for failed in [mine(State::Failed), lapsed(mine(State::Failed))] {
        let out = Record { lettered: true, lease_until: 0, error: None, ..failed.clone() };
        let renewed = Record { lease_until: NOW + 30_000, ..failed.clone() };
        assert_eq!(settle_of(&failed, &Step::Lettered), (Settled::Applied, Some(out)));
        assert_eq!(settle_of(&failed, &Step::Renew { lease: LEASE }), (Settled::Applied, Some(renewed.clone())));
        // Repeated, it keeps the first error.
        assert_eq!(settle_of(&failed, &condemn("another")), (Settled::Applied, Some(renewed)));
        assert_eq!(settle_of(&failed, &Step::Complete), (Settled::Refused, None));
        assert_eq!(settle_of(&failed, &Step::Release { next: turn(1, 1) }), (Settled::Refused, None));
    }
}

#[test]
fn a_repeated_step_is_applied_and_changes_nothing() {
    let out = Record { owner: Some(ME), ..lettered() };
    for (record, step) in [
        (mine(State::Success), Step::Complete),
        (mine(State::Pending), Step::Release { next: turn(1, 1) }),
        (out.clone(), Step::Lettered),
        (out.clone(), condemn("no stock")),
    ] {
        assert_eq!(settle_of(&record, &step), (Settled::Applied, None));
        for other in steps().into_iter().filter(|other| *other != step) {
            let repeats = record == out && matches!(other, Step::Lettered | Step::Condemn { .. });
            let expected = if repeats { Settled::Applied } else { Settled::Refused };
            assert_eq!(settle_of(&record, &other), (expected, None), "{other:?} of {record:?}");
        }
    }
}

#[test]
fn nobody_else_settles_anything() {
    let records = [
        record(State::Pending),
        record(State::Processing),
        lapsed(record(State::Processing)),
        record(State::Success),
        record(State::Failed),
        lapsed(record(State::Failed)),
        lettered(),
        Record { owner: None, ..record(State::Pending) },
    ];
    for step in steps() {
        assert_eq!(settle(None, &hold(ME), &step, NOW), (Settled::Refused, None));
        for record in &records {
            assert_eq!(settle_of(record, &step), (Settled::Refused, None), "{step:?} of {record:?}");
        }
    }
}

#[test]
fn a_record_is_kept_for_its_ttl_and_never_under_a_live_lease_or_owing_a_letter() {
    let short = Duration::from_millis(5);
    assert_eq!(record(State::Success).kept_until(NOW, TTL), NOW + 86_400_000);
    assert_eq!(record(State::Success).kept_until(NOW, short), NOW + 5);
    assert_eq!(record(State::Pending).kept_until(NOW, short), NOW + 5);
    assert_eq!(record(State::Processing).kept_until(NOW, short), NOW + 10_000);
    assert_eq!(record(State::Processing).kept_until(NOW, TTL), NOW + 86_400_000);
    assert_eq!(record(State::Failed).kept_until(NOW, short), NOW + 30 * 86_400_000);
    assert_eq!(record(State::Failed).kept_until(NOW, TTL * 90), NOW + 90 * 86_400_000);
    assert_eq!(lettered().kept_until(NOW, short), NOW + 5);
    assert_eq!(record(State::Success).kept_until(NOW, Duration::MAX), u64::MAX);
}

#[test]
fn times_are_rounded_up_and_errors_cut_at_a_character() {
    assert_eq!(millis(Duration::from_nanos(1)), 1);
    assert_eq!(millis(Duration::from_millis(7)), 7);
    assert_eq!(millis(Duration::MAX), u64::MAX);
    assert_eq!(cut("short"), "short");
    let text = format!("x{}", "é".repeat(MAX_ERROR));
    assert_eq!(cut(&text).len(), MAX_ERROR - 1);
}
