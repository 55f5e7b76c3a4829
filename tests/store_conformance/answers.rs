//! The rows of the table of answers to a claim.

use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{Claim, Fingerprint, Owner, Step, Store};

use crate::message::{LONG, Message, SHORT, condemn, granted, pass, release, turn};

pub(crate) async fn the_first_claim_is_granted(store: &Arc<dyn Store>) {
    let message = Message::new(store, LONG);
    assert_eq!(message.claim(turn(0, 0), Owner::random()).await, granted(0));
    let later = Message::new(store, LONG);
    assert_eq!(later.claim(turn(2, 7), Owner::random()).await, granted(0));
}

pub(crate) async fn a_released_message_is_granted_from_its_next_turn_on(store: &Arc<dyn Store>) {
    for (asked, answer) in [
        (turn(1, 1), Claim::Stale),
        (turn(0, 9), Claim::Stale),
        (turn(1, 2), granted(0)),
        (turn(1, 3), granted(0)),
        (turn(2, 0), granted(0)),
    ] {
        let message = Message::new(store, LONG);
        let owner = Owner::random();
        message.claim(turn(1, 0), owner).await;
        message.applied(owner, release(1, 2)).await;
        assert_eq!(message.claim(asked, Owner::random()).await, answer, "{asked:?}");
        if answer == Claim::Stale {
            assert_eq!(message.claim(turn(1, 2), Owner::random()).await, granted(0), "a stale claim changes nothing");
        }
    }
}

pub(crate) async fn a_live_claim_is_busy_and_an_older_turn_stale(store: &Arc<dyn Store>) {
    let message = Message::new(store, LONG);
    let owner = Owner::random();
    assert_eq!(message.claim(turn(1, 3), owner).await, granted(0));
    for asked in [turn(1, 3), turn(1, 4), turn(2, 0)] {
        let left = message.is_busy(asked).await;
        assert!(left <= LONG && left > LONG / 2, "{left:?}");
    }
    for asked in [turn(1, 2), turn(0, 3), turn(0, 10)] {
        assert_eq!(message.claim(asked, Owner::random()).await, Claim::Stale);
    }
    message.applied(owner, Step::Complete).await;
}

pub(crate) async fn a_lapsed_claim_is_taken_over_and_counted(store: &Arc<dyn Store>) {
    let mut message = Message::new(store, SHORT);
    message.claimed().await;
    assert_eq!(message.claim_when_free(turn(0, 0), Owner::random()).await, granted(1));
    message.lease = LONG;
    assert_eq!(message.claim_when_free(turn(0, 1), Owner::random()).await, granted(2));
    message.is_busy(turn(0, 1)).await;
    assert_eq!(message.claim(turn(0, 0), Owner::random()).await, Claim::Stale, "the turn is that of the takeover");
}

pub(crate) async fn an_older_turn_takes_nothing_over(store: &Arc<dyn Store>) {
    let message = Message::new(store, SHORT);
    let owner = Owner::random();
    message.claim(turn(0, 1), owner).await;
    pass(store, SHORT * 2).await;
    assert_eq!(message.claim(turn(0, 0), Owner::random()).await, Claim::Stale);
    message.applied(owner, Step::Complete).await;
}

pub(crate) async fn too_many_crashes_owe_a_letter(store: &Arc<dyn Store>) {
    let mut message = Message::new(store, SHORT);
    message.max_crashes = 2;
    message.claimed().await;
    for crashes in 1..=2 {
        assert_eq!(message.claim_when_free(turn(0, 0), Owner::random()).await, granted(crashes));
    }
    let owner = Owner::random();
    let letter = Claim::Letter { generation: 0, error: None, crashes: 3 };
    message.lease = LONG;
    assert_eq!(message.claim_when_free(turn(0, 0), owner).await, letter);
    assert!(message.is_busy(turn(0, 0)).await <= LONG);

    // Its owner does not publish it: it is still owed, and that is no further crash.
    message.applied(owner, Step::Renew { lease: SHORT }).await;
    let next = Owner::random();
    assert_eq!(message.claim_when_free(turn(0, 0), next).await, letter);
    message.refused(owner, Step::Lettered).await;
    message.refused(next, Step::Complete).await;
    message.applied(next, Step::Lettered).await;
    assert_eq!(message.claim(turn(0, 0), Owner::random()).await, Claim::Duplicate);
}

pub(crate) async fn the_crashes_of_a_message_are_not_forgotten_with_a_release(store: &Arc<dyn Store>) {
    let message = Message::new(store, SHORT);
    message.claimed().await;
    let owner = Owner::random();
    assert_eq!(message.claim_when_free(turn(0, 0), owner).await, granted(1));
    message.applied(owner, release(0, 1)).await;
    assert_eq!(message.claim(turn(0, 1), Owner::random()).await, granted(1));
}

pub(crate) async fn a_condemned_message_owes_its_letter(store: &Arc<dyn Store>) {
    let mut message = Message::new(store, SHORT);
    let owner = Owner::random();
    message.claim(turn(1, 1), owner).await;
    message.applied(owner, condemn("no stock", LONG)).await;
    for asked in [turn(1, 1), turn(1, 2), turn(1, 0), turn(0, 0)] {
        let left = message.is_busy(asked).await;
        assert!(left <= LONG && left > LONG / 2, "the lease is the one given with the error: {left:?}");
    }
    message.applied(owner, Step::Renew { lease: SHORT }).await;
    message.lease = LONG;
    let next = Owner::random();
    let letter = Claim::Letter { generation: 1, error: Some("no stock".into()), crashes: 0 };
    assert_eq!(message.claim_when_free(turn(0, 0), next).await, letter, "whoever asks");
    message.is_busy(turn(1, 1)).await;
    message.refused(owner, Step::Lettered).await;
    message.applied(next, Step::Lettered).await;
}

pub(crate) async fn a_letter_that_is_out_is_final_but_for_a_newer_generation(store: &Arc<dyn Store>) {
    let message = Message::new(store, SHORT);
    let first = Owner::random();
    message.claim(turn(1, 0), first).await;
    let owner = Owner::random();
    assert_eq!(message.claim_when_free(turn(1, 0), owner).await, granted(1));
    message.applied(owner, condemn("no stock", LONG)).await;
    message.applied(owner, Step::Lettered).await;
    for asked in [turn(1, 0), turn(1, 9), turn(0, 0)] {
        assert_eq!(message.claim(asked, Owner::random()).await, Claim::Duplicate);
    }
    let replayed = Owner::random();
    assert_eq!(message.claim(turn(2, 0), replayed).await, granted(0), "a replay begins without crashes");
    message.applied(replayed, Step::Complete).await;
    assert_eq!(message.claim(turn(2, 0), Owner::random()).await, Claim::Duplicate);
}

pub(crate) async fn a_newer_generation_does_not_wait_for_an_owed_letter(store: &Arc<dyn Store>) {
    let message = Message::new(store, LONG);
    let owner = message.claimed().await;
    message.applied(owner, condemn("no stock", LONG)).await;
    let replayed = Owner::random();
    assert_eq!(message.claim(turn(1, 0), replayed).await, granted(0));
    message.refused(owner, Step::Lettered).await;
    message.applied(replayed, condemn("still no stock", Duration::ZERO)).await;
    let letter = Claim::Letter { generation: 1, error: Some("still no stock".into()), crashes: 0 };
    assert_eq!(message.claim_when_free(turn(1, 0), Owner::random()).await, letter);
}

pub(crate) async fn success_is_final(store: &Arc<dyn Store>) {
    let message = Message::new(store, LONG);
    let owner = message.claimed().await;
    message.applied(owner, Step::Complete).await;
    for asked in [turn(0, 0), turn(0, 5), turn(3, 0)] {
        assert_eq!(message.claim(asked, Owner::random()).await, Claim::Duplicate);
        assert_eq!(message.claim(asked, owner).await, Claim::Duplicate, "to its owner too");
    }
}

pub(crate) async fn another_body_under_the_same_identity_is_a_conflict(store: &Arc<dyn Store>) {
    let message = Message::new(store, LONG);
    let other = Message { body: Fingerprint(8), ..message.clone() };
    let owner = message.claimed().await;
    other.is_busy(turn(0, 0)).await;
    message.applied(owner, release(0, 1)).await;
    assert_eq!(other.claim(turn(0, 0), Owner::random()).await, Claim::Conflict);
    assert_eq!(message.claim(turn(0, 0), Owner::random()).await, Claim::Stale);
    let owner = Owner::random();
    assert_eq!(message.claim(turn(0, 1), owner).await, granted(0));
    assert_eq!(other.claim(turn(0, 0), Owner::random()).await, Claim::Conflict);
    message.applied(owner, Step::Renew { lease: LONG }).await;
    message.applied(owner, Step::Complete).await;
    assert_eq!(other.claim(turn(0, 0), Owner::random()).await, Claim::Conflict);
    assert_eq!(message.claim(turn(0, 0), Owner::random()).await, Claim::Duplicate);

    let message = Message::new(store, LONG);
    let other = Message { body: Fingerprint(8), ..message.clone() };
    let owner = message.claimed().await;
    message.applied(owner, condemn("no stock", LONG)).await;
    message.applied(owner, Step::Lettered).await;
    assert_eq!(other.claim(turn(0, 0), Owner::random()).await, Claim::Conflict);
    // A replay may bring a body that was mended.
    let owner = Owner::random();
    assert_eq!(other.claim(turn(1, 0), owner).await, granted(0));
    message.applied(owner, Step::Complete).await;
    assert_eq!(message.claim(turn(0, 0), Owner::random()).await, Claim::Conflict);
    assert_eq!(other.claim(turn(1, 0), Owner::random()).await, Claim::Duplicate);
}

pub(crate) async fn a_ping_leaves_everything_as_it_is(store: &Arc<dyn Store>) {
    let message = Message::new(store, LONG);
    let owner = message.claimed().await;
    store.ping().await.expect("the store can be used");
    store.warnings().await.expect("the store can be asked");
    message.is_busy(turn(0, 0)).await;
    message.applied(owner, Step::Complete).await;
}
