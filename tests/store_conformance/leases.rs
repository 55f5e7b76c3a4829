//! Leases, by the store's clock.

use std::sync::Arc;

use mqguard::idempotency::{Claim, Owner, Step, Store};

use crate::message::{LONG, Message, SHORT, condemn, granted, pass, release, turn};

pub(crate) async fn a_late_owner_changes_nothing(store: &Arc<dyn Store>) {
    for step in [Step::Complete, release(0, 1), condemn("late", LONG), Step::Lettered, Step::Renew { lease: LONG }, release(0, 0)]
    {
        let mut message = Message::new(store, SHORT);
        let late = message.claimed().await;
        message.lease = LONG;
        let owner = Owner::random();
        assert_eq!(message.claim_when_free(turn(0, 0), owner).await, granted(1));
        message.refused(late, step.clone()).await;
        let left = message.is_busy(turn(0, 0)).await;
        assert!(left <= LONG, "{step:?}");
        message.applied(owner, condemn("in time", SHORT)).await;
        message.refused(late, step.clone()).await;
        let last = Owner::random();
        let letter = Claim::Letter { generation: 0, error: Some("in time".into()), crashes: 1 };
        assert_eq!(message.claim_when_free(turn(0, 0), last).await, letter);
        message.refused(owner, step).await;
        message.applied(last, Step::Lettered).await;
    }
}

pub(crate) async fn a_lapsed_lease_that_nobody_took_is_still_its_owners(store: &Arc<dyn Store>) {
    let steps = [Step::Complete, release(0, 1), condemn("slow", LONG), Step::Renew { lease: LONG }];
    let mut claimed = Vec::new();
    for step in steps {
        let message = Message::new(store, SHORT);
        let owner = message.claimed().await;
        claimed.push((message, owner, step));
    }
    pass(store, SHORT * 2).await;
    for (message, owner, step) in claimed {
        message.applied(owner, step.clone()).await;
        let answer = message.claim(turn(0, 0), Owner::random()).await;
        match step {
            Step::Complete => assert_eq!(answer, Claim::Duplicate),
            Step::Release { .. } => assert_eq!(answer, Claim::Stale),
            _ => assert!(matches!(answer, Claim::Busy { .. }), "{answer:?}"),
        }
    }
}

pub(crate) async fn a_renewal_keeps_the_lease(store: &Arc<dyn Store>) {
    let message = Message::new(store, SHORT);
    let owner = message.claimed().await;
    message.applied(owner, Step::Renew { lease: LONG }).await;
    pass(store, SHORT * 2).await;
    assert!(message.is_busy(turn(0, 0)).await > LONG / 2);
    // It counts from now: a shorter one ends earlier.
    message.applied(owner, Step::Renew { lease: SHORT }).await;
    assert_eq!(message.claim_when_free(turn(0, 0), Owner::random()).await, granted(1));
}

pub(crate) async fn a_renewal_keeps_the_lease_of_an_owed_letter(store: &Arc<dyn Store>) {
    let message = Message::new(store, SHORT);
    let owner = message.claimed().await;
    message.applied(owner, condemn("no stock", SHORT)).await;
    message.applied(owner, Step::Renew { lease: LONG }).await;
    pass(store, SHORT * 2).await;
    assert!(message.is_busy(turn(0, 0)).await > LONG / 2);
    message.applied(owner, Step::Lettered).await;
    message.refused(owner, Step::Renew { lease: LONG }).await;
}
