//! Against the model, and in random orders.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;

use proptest::prelude::*;

use super::tests::{ME, NOW, ask, claim_of, hold, record, turn};
use super::*;

/// `claim` of the model that was explored exhaustively, for an asker who is not the owner.
fn of_model(record: &Record, asked: Turn, live: bool, max_crashes: u32) -> (&'static str, Option<(State, Turn, u32)>) {
    let processing = |crashes| Some((State::Processing, asked, crashes));
    let failed = |crashes| Some((State::Failed, record.turn, crashes));
    if record.state == State::Success {
        return ("duplicate", None);
    }
    if record.state == State::Failed {
        if asked.generation > record.turn.generation {
            return ("granted", processing(0));
        }
        if record.lettered {
            return ("duplicate", None);
        }
        return if live { ("busy", None) } else { ("letter", failed(record.crashes)) };
    }
    if asked < record.turn {
        return ("stale", None);
    }
    if record.state == State::Pending {
        return ("granted", processing(record.crashes));
    }
    if live {
        return ("busy", None);
    }
    let crashes = record.crashes + 1;
    if crashes > max_crashes { ("letter", failed(crashes)) } else { ("granted", processing(crashes)) }
}

fn word(claim: &Claim) -> &'static str {
    match claim {
        Claim::Granted { .. } => "granted",
        Claim::Busy { .. } => "busy",
        Claim::Stale => "stale",
        Claim::Duplicate => "duplicate",
        Claim::Conflict => "conflict",
        Claim::Letter { .. } => "letter",
    }
}

#[test]
fn claims_are_answered_as_in_the_model() {
    let turns: Vec<Turn> = (0..3).flat_map(|generation| (0..3).map(move |step| turn(generation, step))).collect();
    let mut compared = 0;
    for state in [State::Pending, State::Processing, State::Success, State::Failed] {
        for lease_until in [0, NOW, NOW + 1, NOW + 50] {
            for crashes in 0..5 {
                for lettered in [false, true] {
                    for &was in &turns {
                        let record = Record { turn: was, lease_until, crashes, lettered, ..record(state) };
                        for &asked in &turns {
                            let (answer, stored) = claim_of(&record, asked);
                            let stored = stored.map(|stored| {
                                assert_eq!((stored.owner, stored.lease_until, stored.lettered), (Some(ME), NOW + 30_000, false));
                                (stored.state, stored.turn, stored.crashes)
                            });
                            assert_eq!(
                                (word(&answer), stored),
                                of_model(&record, asked, lease_until > NOW, 3),
                                "{record:?} {asked:?}"
                            );
                            compared += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(compared, 4 * 4 * 5 * 2 * 81);
}

#[derive(Debug, Clone)]
enum Move {
    Claim { turn: Turn, owner: u128 },
    Settle { owner: u128, step: Step },
    Pass(u64),
}

fn moves() -> impl Strategy<Value = Move> {
    let turns = || (0..2u32, 0..3u32).prop_map(|(generation, step)| turn(generation, step));
    let lease = || (1..60u64).prop_map(Duration::from_secs);
    let step = prop_oneof![
        Just(Step::Complete),
        turns().prop_map(|next| Step::Release { next }),
        lease().prop_map(|lease| Step::Condemn { error: "no stock".into(), lease }),
        Just(Step::Lettered),
        lease().prop_map(|lease| Step::Renew { lease }),
    ];
    prop_oneof![
        4 => (turns(), 1..5u128).prop_map(|(turn, owner)| Move::Claim { turn, owner }),
        4 => (1..5u128, step).prop_map(|(owner, step)| Move::Settle { owner, step }),
        2 => (0..40_000u64).prop_map(Move::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_moves_breaks_the_protocol(moves in prop::collection::vec(moves(), 1..60)) {
        let mut record: Option<Record> = None;
        let mut now = NOW;
        // Until when each owner believes to hold the message.
        let mut believed = HashMap::<Owner, u64>::new();
        let mut succeeded = false;
        for step in moves {
            match step {
                Move::Pass(time) => now += time,
                Move::Claim { turn, owner } => {
                    let request = ask(turn, Owner(owner));
                    let (answer, stored) = claim(record.as_ref(), &request, now);
                    let taken = matches!(answer, Claim::Granted { .. } | Claim::Letter { .. });
                    prop_assert_eq!(taken, stored.is_some());
                    if let Claim::Busy { left } = answer {
                        prop_assert!(left > Duration::ZERO);
                    }
                    if matches!(answer, Claim::Granted { .. }) {
                        prop_assert!(!succeeded, "granted after success");
                    }
                    if let Some(stored) = stored {
                        let replayed = record.as_ref().is_some_and(|record| {
                            record.state == State::Failed && turn.generation > record.turn.generation
                        });
                        let others = believed.iter().filter(|&(&other, &until)| other != request.owner && until > now).count();
                        prop_assert!(others == 0 || replayed, "two live leases");
                        if replayed {
                            believed.clear();
                        }
                        believed.insert(request.owner, stored.lease_until);
                        record = Some(stored);
                    }
                }
                Move::Settle { owner, step } => {
                    let owner = Owner(owner);
                    let (answer, stored) = settle(record.as_ref(), &hold(owner), &step, now);
                    let owns = record.as_ref().is_some_and(|record| record.owner == Some(owner));
                    match answer {
                        Settled::Refused => prop_assert_eq!(&stored, &None, "a refused step changes nothing"),
                        Settled::Applied => prop_assert!(owns, "a stale owner was believed"),
                    }
                    if let Some(stored) = stored {
                        prop_assert_eq!(stored.owner, Some(owner));
                        succeeded |= stored.state == State::Success;
                        believed.insert(owner, stored.lease_until);
                        record = Some(stored);
                    }
                }
            }
            if let Some(record) = &record {
                prop_assert!(!succeeded || record.state == State::Success, "success is final");
                prop_assert!(record.kept_until(now, Duration::ZERO) >= record.lease_until);
            }
        }
    }
}
