//! What each step does to each record, and that it may be repeated.

use std::sync::Arc;

use mqguard::idempotency::{Claim, Owner, Settled, Step, Store};

use crate::message::{LONG, Message, SHORT, condemn, granted, release, turn};

const STATES: [&str; 6] = ["none", "pending", "processing", "success", "owed", "lettered"];

/// A message whose record is in this state, and who made it so.
async fn in_state(store: &Arc<dyn Store>, state: &str) -> (Message, Owner) {
    let message = Message::new(store, LONG);
    let owner = Owner::random();
    if state == "none" {
        return (message, owner);
    }
    assert_eq!(message.claim(turn(0, 0), owner).await, granted(0));
    match state {
        "processing" => {}
        "pending" => message.applied(owner, release(0, 1)).await,
        "success" => message.applied(owner, Step::Complete).await,
        "owed" => message.applied(owner, condemn("no stock", LONG)).await,
        _ => {
            message.applied(owner, condemn("no stock", LONG)).await;
            message.applied(owner, Step::Lettered).await;
        }
    }
    (message, owner)
}

/// What a claim of somebody else is answered in this state.
fn answer(state: &str) -> &'static str {
    match state {
        "none" | "pending" => "granted",
        "processing" | "owed" => "busy",
        _ => "duplicate",
    }
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

pub(crate) async fn each_step_applies_to_its_state_only(store: &Arc<dyn Store>) {
    // The step, the states it applies to (repeated or not), and the one it leads to from the first of them.
    let steps: [(Step, &[&str], &str); 5] = [
        (Step::Complete, &["processing", "success"], "success"),
        (release(0, 1), &["processing", "pending"], "pending"),
        (condemn("no stock", LONG), &["processing", "owed", "lettered"], "owed"),
        (Step::Lettered, &["owed", "lettered"], "lettered"),
        (Step::Renew { lease: LONG }, &["processing", "owed"], "processing"),
    ];
    for state in STATES {
        for (step, applies, leads_to) in &steps {
            let (message, owner) = in_state(store, state).await;
            message.refused(Owner::random(), step.clone()).await;
            let applied = applies.contains(&state);
            let expected = if applied { Settled::Applied } else { Settled::Refused };
            assert_eq!(message.settle(owner, step.clone()).await, expected, "{step:?} of {state}");
            let now = if state == applies[0] { leads_to } else { state };
            let claim = message.claim(turn(0, 1), Owner::random()).await;
            assert_eq!(word(&claim), answer(now), "after {step:?} of {state}: {claim:?}");
        }
    }
}

pub(crate) async fn a_repeated_step_is_answered_as_the_first_time(store: &Arc<dyn Store>) {
    for (before, step) in [
        ("processing", Step::Complete),
        ("processing", release(0, 1)),
        ("processing", condemn("no stock", LONG)),
        ("owed", Step::Lettered),
        ("processing", Step::Renew { lease: LONG }),
        ("owed", Step::Renew { lease: LONG }),
    ] {
        let (message, owner) = in_state(store, before).await;
        for _ in 0..3 {
            message.applied(owner, step.clone()).await;
        }
    }
}

pub(crate) async fn a_repeated_claim_is_answered_as_the_first_time(store: &Arc<dyn Store>) {
    let mut message = Message::new(store, SHORT);
    message.claimed().await;
    message.lease = LONG;
    let owner = Owner::random();
    assert_eq!(message.claim_when_free(turn(0, 0), owner).await, granted(1));
    assert_eq!(message.claim(turn(0, 0), owner).await, granted(1), "no crash more");
    assert_eq!(message.claim(turn(0, 0), owner).await, granted(1));
    message.is_busy(turn(0, 0)).await;

    message.applied(owner, condemn("no stock", SHORT)).await;
    let letter = Claim::Letter { generation: 0, error: Some("no stock".into()), crashes: 1 };
    let next = Owner::random();
    assert_eq!(message.claim_when_free(turn(0, 0), next).await, letter);
    assert_eq!(message.claim(turn(0, 0), next).await, letter);
    message.is_busy(turn(0, 0)).await;

    // The claim that condemns a message that crashed too often.
    let mut message = Message::new(store, SHORT);
    message.max_crashes = 0;
    message.claimed().await;
    message.lease = LONG;
    let letter = Claim::Letter { generation: 0, error: None, crashes: 1 };
    assert_eq!(message.claim_when_free(turn(0, 0), next).await, letter);
    assert_eq!(message.claim(turn(0, 0), next).await, letter);
}

pub(crate) async fn a_release_to_another_turn_is_no_repetition(store: &Arc<dyn Store>) {
    let (message, owner) = in_state(store, "pending").await;
    message.refused(owner, release(0, 2)).await;
    message.refused(owner, release(1, 1)).await;
    assert_eq!(message.claim(turn(0, 1), Owner::random()).await, granted(0));
}

pub(crate) async fn an_error_is_kept_to_the_letter(store: &Arc<dyn Store>) {
    // Texts that look like the end of themselves.
    for error in ["\" [\"", "\\\" [\"\\", " letter=out error=\"x\" [\"", "[]", "\0\u{7f}"] {
        assert_eq!(kept(store, error).await, error);
    }
    for error in ["", "two\nlines", "quotes ' \" ` and \\", "größer 😀 %s {} $1 ?", "1", "nil"] {
        assert_eq!(kept(store, error).await, error);
    }
}

pub(crate) async fn a_long_error_is_cut_at_a_character(store: &Arc<dyn Store>) {
    assert_eq!(kept(store, &"x".repeat(20_000)).await, "x".repeat(8_192));
    assert_eq!(kept(store, &format!("x{}", "😀".repeat(5_000))).await, format!("x{}", "😀".repeat(2_047)));
}

/// What of an error the next owner of the letter is given.
async fn kept(store: &Arc<dyn Store>, error: &str) -> String {
    let mut message = Message::new(store, LONG);
    let owner = message.claimed().await;
    message.applied(owner, condemn(error, std::time::Duration::ZERO)).await;
    message.lease = LONG;
    match message.claim_when_free(turn(0, 0), Owner::random()).await {
        Claim::Letter { error: Some(error), crashes: 0, .. } => error,
        other => panic!("no letter but {other:?}"),
    }
}
