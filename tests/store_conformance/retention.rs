//! How long a record is kept.

use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{Claim, Owner, Settled, Step, Store};
use tokio::time::{Instant, sleep};

use crate::message::{LONG, Message, SHORT, condemn, pass, turn};

pub(crate) async fn success_is_forgotten_after_its_ttl_and_not_before(store: &Arc<dyn Store>) {
    let mut message = Message::new(store, LONG);
    let owner = message.claimed().await;
    message.ttl = Duration::from_millis(400);
    let before = Instant::now();
    message.applied(owner, Step::Complete).await;
    let after = Instant::now();
    loop {
        let asked = Instant::now();
        match message.claim(turn(0, 0), Owner::random()).await {
            // Neither these claims nor a repeated step prolong it. By at most a second it may be late: some stores tidy in rounds.
            Claim::Duplicate => assert!(asked < after + message.ttl + Duration::from_secs(1), "kept for too long"),
            answer => {
                assert_eq!(answer, Claim::Granted { crashes: 0 });
                // The two clocks may differ by a few milliseconds over this time.
                assert!(before.elapsed() + Duration::from_millis(5) >= message.ttl, "forgotten after {:?}", before.elapsed());
                return;
            }
        }
        // It may be forgotten between the two questions.
        if message.settle(owner, Step::Complete).await == Settled::Refused {
            assert!(before.elapsed() + Duration::from_millis(5) >= message.ttl, "forgotten after {:?}", before.elapsed());
        }
        sleep(message.ttl / 40).await;
    }
}

pub(crate) async fn a_live_lease_outlives_its_ttl(store: &Arc<dyn Store>) {
    let mut message = Message::new(store, LONG);
    message.ttl = Duration::from_millis(1);
    let owner = message.claimed().await;
    pass(store, SHORT).await;
    message.is_busy(turn(0, 0)).await;
    message.applied(owner, Step::Renew { lease: LONG }).await;
    pass(store, SHORT).await;
    message.is_busy(turn(0, 0)).await;
}

pub(crate) async fn an_owed_letter_outlives_its_ttl(store: &Arc<dyn Store>) {
    let mut message = Message::new(store, SHORT);
    message.ttl = Duration::from_millis(1);
    let owner = message.claimed().await;
    message.applied(owner, condemn("no stock", SHORT)).await;
    pass(store, SHORT * 2).await;
    let letter = Claim::Letter { generation: 0, error: Some("no stock".into()), crashes: 0 };
    assert_eq!(message.claim_when_free(turn(0, 0), Owner::random()).await, letter);
    pass(store, SHORT * 2).await;
    assert_eq!(message.claim_when_free(turn(0, 0), Owner::random()).await, letter);
}
