//! Rows, and whole databases, that somebody else has locked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mqguard::idempotency::{Claim, Mode, Settled, Step, StoreError, Turn};

use crate::database::{Kind, Lab};
use crate::{GRANTED, by_another, claim_all, hold, request, requests, settle_all};

on_each! {
    servers:
    a_locked_row_holds_nobody_else_up,
    many_locked_rows_hold_nobody_else_up,
    rows_that_are_not_committed_hold_nobody_else_up,
    deadlocks_are_nobody_elses_business,
}

/// By the whole primary key: MariaDB locks whatever it reads on the way.
const KEY: &str = "consumer = 'order.process' AND business_key = '42'";

fn is_busy(answer: &Result<Claim, StoreError>) -> bool {
    matches!(answer, Ok(Claim::Busy { left }) if !left.is_zero() && *left <= Duration::from_secs(2))
}

fn is_unavailable<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Unavailable(_)))
}

/// Locks the rows of these messages until it is committed.
async fn lock(session: &mut crate::session::Session, ids: &str) {
    if matches!(session, crate::session::Session::MariaDb(_)) {
        // Otherwise the rows between them are locked too.
        session.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await;
    }
    session.must("BEGIN").await;
    let sql = format!("SELECT CAST(1 AS SIGNED) FROM mq_consume_record WHERE {KEY} AND msg_id IN ({ids}) FOR UPDATE");
    let sql =
        if matches!(session, crate::session::Session::Postgres(_)) { sql.replace("CAST(1 AS SIGNED)", "1::bigint") } else { sql };
    assert!(!session.numbers(&sql).await.is_empty());
}

async fn a_locked_row_holds_nobody_else_up(kind: Kind) {
    let lab = Lab::new(kind).await;
    let store = lab.ready().await;
    let claims = requests(20);
    assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED));
    let mut other = lab.session().await;
    lock(&mut other, "'007'").await;

    let begun = Instant::now();
    let mut asked = claims.clone();
    // This one would take over, which changes the row; the others are busy.
    asked[7].turn = Turn { generation: 0, step: 1 };
    let settled = settle_all(&store, &claims, &Step::Complete).await;
    for (nth, answer) in settled.iter().enumerate() {
        if nth == 7 {
            assert!(is_unavailable(answer), "{answer:?}");
        } else {
            assert_eq!(*answer, Ok(Settled::Applied), "{nth}");
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    other.must("ROLLBACK").await;
    assert_eq!(store.settle(&hold(&claims[7]), &Step::Complete).await, Ok(Settled::Applied));
}

/// More rows than there are seconds to answer in.
async fn many_locked_rows_hold_nobody_else_up(kind: Kind) {
    let lab = Lab::new(kind).await;
    let store = lab.ready().await;
    let mut claims = requests(60);
    for claim in &mut claims {
        claim.lease = Duration::ZERO;
    }
    assert!(claim_all(&store, &claims).await.iter().all(Result::is_ok));
    let mut other = lab.session().await;
    let is_locked = |nth: usize| nth.is_multiple_of(3);
    let ids: Vec<_> = (0..60).filter(|&nth| is_locked(nth)).map(|nth| format!("'{nth:03}'")).collect();
    lock(&mut other, &ids.join(",")).await;

    let begun = Instant::now();
    let later: Vec<_> = claims.iter().map(by_another).collect();
    for (nth, answer) in claim_all(&store, &later).await.iter().enumerate() {
        if is_locked(nth) {
            assert!(is_busy(answer), "{nth}: {answer:?}");
        } else {
            assert_eq!(*answer, Ok(Claim::Granted { crashes: 1 }), "{nth}");
        }
    }
    for (nth, answer) in settle_all(&store, &later, &Step::Complete).await.iter().enumerate() {
        if is_locked(nth) {
            // It never was its owner; not every database can tell without the lock.
            assert!(is_unavailable(answer) || *answer == Ok(Settled::Refused), "{nth}: {answer:?}");
        } else {
            assert_eq!(*answer, Ok(Settled::Applied), "{nth}");
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    other.must("COMMIT").await;
    for (nth, answer) in claim_all(&store, &later).await.iter().enumerate() {
        let expected = if is_locked(nth) { Ok(Claim::Granted { crashes: 1 }) } else { Ok(Claim::Duplicate) };
        assert_eq!(*answer, expected, "{nth}");
    }
}

async fn rows_that_are_not_committed_hold_nobody_else_up(kind: Kind) {
    let lab = Lab::new(kind).await;
    let store = lab.store_in(Mode::StateMachine);
    store.ping().await.expect("it can be used");
    let claims = requests(40);
    let mut producer = lab.session().await;
    producer.must("BEGIN").await;
    for claim in claims.iter().step_by(2) {
        assert!(producer.register(&claim.identity, Duration::from_secs(60)).await.expect("registered"));
    }
    let begun = Instant::now();
    for (nth, answer) in claim_all(&store, &claims).await.iter().enumerate() {
        if nth % 2 == 0 {
            assert!(is_busy(answer), "{nth}: {answer:?}");
        } else {
            assert_eq!(*answer, GRANTED, "{nth}");
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    producer.must("COMMIT").await;
    assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED), "the busy ones, and the others again");
}

/// A session that locks rows in another order: the server ends one of the two, and nobody is told.
async fn deadlocks_are_nobody_elses_business(kind: Kind) {
    let lab = Lab::new(kind).await;
    let store = lab.ready().await;
    let claims = requests(30);
    assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED));
    let mut other = lab.session().await;
    let heavy = "UPDATE mq_consume_record SET created_at = created_at WHERE";
    for round in 0..3 {
        other.must("BEGIN").await;
        // The one that has changed more is not the one that MariaDB ends.
        other.must(&format!("{heavy} {KEY} AND msg_id >= '015'")).await;
        let renewing = {
            let (store, claims) = (Arc::clone(&store), claims.clone());
            tokio::spawn(async move { settle_all(&store, &claims, &Step::Renew { lease: crate::LEASE }).await })
        };
        tokio::time::sleep(Duration::from_millis(300)).await;
        // Either this is ended, or the one that renews.
        match other.run(&format!("{heavy} {KEY} AND msg_id = '000'")).await {
            Ok(_) => other.must("COMMIT").await,
            Err(_) => other.must("ROLLBACK").await,
        };
        for (nth, answer) in renewing.await.expect("no panic").iter().enumerate() {
            assert_eq!(*answer, Ok(Settled::Applied), "round {round}, {nth}");
        }
    }
    assert_eq!(lab.look(&mut other, Mode::Unique, &request("000")).await.crashes, 0);
}

#[tokio::test]
async fn a_locked_file_is_busy_for_claims_and_unavailable_for_steps() {
    let lab = Lab::new(Kind::Sqlite).await;
    let store = lab.ready().await;
    let claims = requests(20);
    assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED));
    let mut other = lab.session().await;
    other.must("BEGIN IMMEDIATE").await;
    let begun = Instant::now();
    let settled = settle_all(&store, &claims, &Step::Complete).await;
    assert!(settled.iter().all(is_unavailable), "{settled:?}");
    let claimed = claim_all(&store, &requests(20)).await;
    assert!(claimed.iter().all(is_busy), "{claimed:?}");
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    other.must("COMMIT").await;
    let settled = settle_all(&store, &claims, &Step::Complete).await;
    assert!(settled.iter().all(|answer| *answer == Ok(Settled::Applied)), "{settled:?}");
}
