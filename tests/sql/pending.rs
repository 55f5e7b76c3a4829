//! Messages that a producer has registered, and those that are stuck.

use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{Claim, Mode, Settled, Step, Turn};

use crate::database::{Kind, Lab, table};
use crate::{GRANTED, LEASE, MODES, by_another, hold, request};

on_each! {
    a_registered_message_is_granted_once_it_is_committed,
    a_message_whose_registration_is_rolled_back_makes_its_own_row,
    a_message_that_comes_before_the_commit_is_not_lost,
    a_message_is_registered_once,
    a_message_that_is_forgotten_can_be_registered,
    what_is_stuck_is_listed_and_nothing_else,
}

const HORIZON: Duration = Duration::from_secs(3_600);

async fn a_registered_message_is_granted_once_it_is_committed(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    let (store, mut producer) = (lab.store_in(Mode::StateMachine), lab.session().await);
    let claim = request("1");
    producer.must("BEGIN").await;
    assert!(producer.register(&claim.identity, HORIZON).await.expect("registered"));
    producer.must("COMMIT").await;
    let stored = lab.look(&mut producer, Mode::StateMachine, &claim).await;
    assert_eq!((stored.status.as_str(), stored.owner, stored.body, stored.lease), ("pending", None, None, None));
    assert!((3_590..=3_600).contains(&stored.kept));
    assert_eq!(store.claim(&claim).await, GRANTED);
    assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
    let other = lab.store_in(Mode::Unique);
    assert_eq!(other.claim(&claim).await, GRANTED, "the other table does not know");
}

async fn a_message_whose_registration_is_rolled_back_makes_its_own_row(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    let (store, mut producer) = (lab.store_in(Mode::StateMachine), lab.session().await);
    let claim = request("1");
    producer.must("BEGIN").await;
    assert!(producer.register(&claim.identity, HORIZON).await.expect("registered"));
    producer.must("ROLLBACK").await;
    assert_eq!(store.claim(&claim).await, GRANTED);
    assert_eq!(store.claim(&by_another(&claim)).await.map(|claim| matches!(claim, Claim::Busy { .. })), Ok(true));
}

async fn a_message_that_comes_before_the_commit_is_not_lost(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    for end in ["COMMIT", "ROLLBACK"] {
        let (store, mut producer) = (lab.store_in(Mode::StateMachine), lab.session().await);
        let claim = request(end);
        producer.must("BEGIN").await;
        assert!(producer.register(&claim.identity, HORIZON).await.expect("registered"));
        let answer = store.claim(&claim).await;
        assert!(matches!(answer, Ok(Claim::Busy { .. })), "{answer:?}");
        // One that still waits when it is over.
        let waiting = {
            let (store, claim) = (Arc::clone(&store), claim.clone());
            tokio::spawn(async move { store.claim(&claim).await })
        };
        tokio::time::sleep(Duration::from_millis(300)).await;
        producer.must(end).await;
        assert_eq!(waiting.await.expect("no panic"), GRANTED, "{end}");
    }
}

async fn a_message_is_registered_once(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    let (store, mut producer) = (lab.store_in(Mode::StateMachine), lab.session().await);
    let claim = request("1");
    for expected in [true, false] {
        producer.must("BEGIN").await;
        assert_eq!(producer.register(&claim.identity, HORIZON).await.expect("an answer"), expected);
        producer.must("COMMIT").await;
    }
    producer.must("BEGIN").await;
    assert!(producer.register(&request("2").identity, HORIZON).await.expect("registered"));
    assert!(!producer.register(&request("2").identity, HORIZON).await.expect("an answer"), "in the same transaction");
    assert!(producer.register(&request("3").identity, HORIZON).await.expect("the transaction goes on"));
    producer.must("COMMIT").await;
    assert_eq!(store.claim(&claim).await, GRANTED);
    assert!(!producer.register(&claim.identity, HORIZON).await.expect("an answer"));
    assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
    assert!(!producer.register(&claim.identity, HORIZON).await.expect("an answer"));
    assert_eq!(lab.look(&mut producer, Mode::StateMachine, &claim).await.status, "success");
    assert_eq!(store.claim(&by_another(&claim)).await, Ok(Claim::Duplicate));
}

/// One that is past its time is as none, also while its row is there.
async fn a_message_that_is_forgotten_can_be_registered(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    let (store, mut producer) = (lab.store_in(Mode::StateMachine), lab.session().await);
    let claim = request("1");
    assert_eq!(store.claim(&claim).await, GRANTED);
    assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
    producer.must(&format!("UPDATE mq_msg_log SET kept_until = {}", kind.time(-1))).await;
    producer.must("BEGIN").await;
    assert!(producer.register(&claim.identity, HORIZON).await.expect("registered"));
    assert!(!producer.register(&claim.identity, HORIZON).await.expect("an answer"));
    producer.must("COMMIT").await;
    let stored = lab.look(&mut producer, Mode::StateMachine, &claim).await;
    assert_eq!((stored.status.as_str(), stored.owner, stored.body, stored.lease), ("pending", None, None, None));
    assert!((3_590..=3_600).contains(&stored.kept));
    let later = by_another(&claim);
    assert_eq!(store.claim(&later).await, GRANTED);
    // What has not ended is never taken for forgotten: it is stuck.
    producer.must(&format!("UPDATE mq_msg_log SET kept_until = {}", kind.time(-1))).await;
    assert!(!producer.register(&claim.identity, HORIZON).await.expect("an answer"));
    assert_eq!(lab.look(&mut producer, Mode::StateMachine, &claim).await.status, "processing");
}

async fn what_is_stuck_is_listed_and_nothing_else(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    let mut dba = lab.session().await;
    for mode in MODES {
        let store = lab.store_in(mode);
        let condemn = |lease| Step::Condemn { error: "no stock".into(), lease };
        let release = Step::Release { next: Turn { generation: 0, step: 1 } };
        for (id, lease, steps) in [
            ("alive", LEASE, vec![]),
            ("processing", Duration::ZERO, vec![]),
            ("owed", LEASE, vec![condemn(Duration::ZERO)]),
            ("being lettered", LEASE, vec![condemn(LEASE)]),
            ("lettered", LEASE, vec![condemn(LEASE), Step::Lettered]),
            ("released", LEASE, vec![release.clone()]),
            ("late", LEASE, vec![release]),
            ("done", LEASE, vec![Step::Complete]),
        ] {
            let mut claim = request(id);
            claim.lease = lease;
            assert_eq!(store.claim(&claim).await, GRANTED);
            for step in steps {
                assert_eq!(store.settle(&hold(&claim), &step).await, Ok(Settled::Applied));
            }
        }
        let table = table(mode);
        dba.must(&format!("UPDATE {table} SET kept_until = {} WHERE msg_id IN ('late', 'done', 'alive')", kind.time(-5))).await;
        for (ago, id) in [(30, "owed"), (20, "late"), (10, "processing"), (40, "done"), (50, "alive")] {
            dba.must(&format!("UPDATE {table} SET updated_at = {} WHERE msg_id = '{id}'", kind.time(-ago))).await;
        }
        let stuck = lab.records().stuck(mode, 100).await.expect("a list");
        let shown: Vec<_> =
            stuck.iter().map(|one| (one.message_id.as_str(), one.status.as_str(), one.since.as_secs() / 10)).collect();
        assert_eq!(shown, [("owed", "failed", 3), ("late", "pending", 2), ("processing", "processing", 1)]);
        assert_eq!(stuck[0].last_error.as_deref(), Some("no stock"));
        assert_eq!((stuck[1].step, stuck[0].consumer.as_str(), stuck[0].business_key.as_str()), (1, "order.process", "42"));
        assert_eq!(lab.records().stuck(mode, 1).await.expect("a list").len(), 1);
        assert!(stuck[0].last_error.is_some() && stuck[1].last_error.is_none());
    }
}
