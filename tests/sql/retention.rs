//! What has ended and is past its time is deleted, nothing else, and claims go on meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mqguard::idempotency::{Claim, Settled, Step, Store, Turn};

use crate::database::{Kind, Lab, table};
use crate::session::Session;
use crate::{GRANTED, LEASE, MODES, by_another, hold, request};

on_each! {
    only_what_has_ended_and_is_past_its_time_is_deleted,
    a_row_that_is_used_again_is_not_deleted_under_its_user,
    claims_go_on_while_records_are_deleted,
}

async fn only_what_has_ended_and_is_past_its_time_is_deleted(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    let mut dba = lab.session().await;
    for mode in MODES {
        let (store, table) = (lab.store_in(mode), table(mode));
        let condemn = Step::Condemn { error: "no".into(), lease: Duration::ZERO };
        for (id, steps) in [
            ("processing", vec![]),
            ("owed", vec![condemn.clone()]),
            ("pending", vec![Step::Release { next: Turn { generation: 0, step: 1 } }]),
            ("lettered", vec![condemn, Step::Lettered]),
            ("done", vec![Step::Complete]),
        ] {
            for age in ["old", "new"] {
                let claim = request(&format!("{id} {age}"));
                assert_eq!(store.claim(&claim).await, GRANTED);
                for step in &steps {
                    assert_eq!(store.settle(&hold(&claim), step).await, Ok(Settled::Applied));
                }
            }
        }
        let old = format!(
            "UPDATE {table} SET kept_until = {past}, updated_at = {past}, created_at = {past} WHERE msg_id LIKE '% old'",
            past = kind.time(-10 * 365 * 24 * 3_600)
        );
        dba.must(&old).await;
        dba.must(&format!("UPDATE {table} SET lease_until = {} WHERE msg_id LIKE '% old'", kind.time(-1))).await;
        assert_eq!(store.purge().await, Ok(2));
        assert_eq!(store.purge().await, Ok(0));
        let count = format!("SELECT COUNT(*) FROM {table}");
        assert_eq!(dba.number(&count).await, 8);
        let ended = format!("{count} WHERE msg_id IN ('done old', 'lettered old')");
        assert_eq!(dba.number(&ended).await, 0);
        insert_done(kind, &mut dba, table, 0, 1_700).await;
        assert_eq!(store.purge().await, Ok(1_700), "in batches");
        assert_eq!(dba.number(&count).await, 8);
    }
}

/// Rows of messages that were processed long ago. Their ids rise with time, as those that the publisher makes.
async fn insert_done(kind: Kind, dba: &mut Session, table: &str, from: u64, count: u64) {
    let to = from + count - 1;
    let columns = "consumer, business_key, msg_id, status, owner, body, revision, kept_until, created_at, updated_at";
    let values = format!("'success', '0123456789abcdef0123456789abcdef', 7, 1, {past}, {past}, {past}", past = kind.time(-3_600));
    let sql = match kind {
        Kind::MariaDb => {
            format!("INSERT INTO {table} ({columns}) SELECT 'order.process', '42', LPAD(seq, 12, '0'), {values} FROM seq_{from}_to_{to}")
        }
        Kind::Postgres => format!(
            "INSERT INTO {table} ({columns}) SELECT 'order.process', '42', lpad(seq::text, 12, '0'), {values} FROM generate_series({from}, {to}) seq"
        ),
        Kind::Sqlite => format!(
            "INSERT INTO {table} ({columns}) WITH RECURSIVE s(seq) AS (VALUES ({from}) UNION ALL SELECT seq + 1 FROM s WHERE seq < {to})
             SELECT 'order.process', '42', printf('%012d', seq), {values} FROM s"
        ),
    };
    assert_eq!(dba.must(&sql).await, count);
}

async fn a_row_that_is_used_again_is_not_deleted_under_its_user(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, mut dba) = (lab.ready().await, lab.session().await);
    let rounds = if kind == Kind::Sqlite { 15 } else { 40 };
    let mut first = (0, 0);
    for round in 0..rounds {
        let mut claims: Vec<_> = (0..50).map(|nth| request(&format!("{round}.{nth}"))).collect();
        for claim in &mut claims {
            // Forgotten at once when it is done.
            claim.ttl = Duration::ZERO;
            assert_eq!(store.claim(claim).await, GRANTED);
        }
        let settled = crate::settle_all(&store, &claims, &Step::Complete).await;
        assert!(settled.iter().all(|answer| *answer == Ok(Settled::Applied)));
        let again: Vec<_> =
            claims.iter().map(|claim| mqguard::idempotency::ClaimRequest { ttl: LEASE, ..by_another(claim) }).collect();
        // The deletion has to log in.
        let a_little_later = async {
            tokio::time::sleep(Duration::from_millis(round * 3)).await;
            crate::claim_all(&store, &again).await
        };
        let (purged, claimed) = tokio::join!(store.purge(), a_little_later);
        assert!(claimed.iter().all(|answer| *answer == GRANTED), "{claimed:?}");
        let purged = purged.expect("it is done");
        if purged > 0 {
            first.0 += 1
        } else {
            first.1 += 1
        };
        let processing =
            format!("SELECT COUNT(*) FROM mq_consume_record WHERE status = 'processing' AND msg_id LIKE '{round}.%'");
        assert_eq!(dba.number(&processing).await, 50, "none of them was deleted: {purged}");
        for claim in &again {
            let answer = store.claim(&by_another(claim)).await;
            assert!(matches!(answer, Ok(Claim::Busy { .. })), "{answer:?}");
        }
    }
    eprintln!("{kind:?}: the deletion came first {} times, the claims {} times", first.0, first.1);
}

/// The latencies of claims, and of whole lives, from the best to the worst, until it is over.
async fn latencies(store: Arc<dyn Store>, run: usize, mut is_over: impl FnMut() -> bool) -> Vec<Duration> {
    let mut all = Vec::new();
    for nth in 0.. {
        if is_over() {
            break;
        }
        let claim = request(&format!("run {run} {nth}"));
        let begun = Instant::now();
        let answer = store.claim(&claim).await;
        all.push(begun.elapsed());
        assert_eq!(answer, GRANTED);
        assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    all.sort();
    all
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// `MQGUARD_TEST_PURGE_ROWS=1000000` measures.
async fn claims_go_on_while_records_are_deleted(kind: Kind) {
    let rows: u64 = std::env::var("MQGUARD_TEST_PURGE_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(20_000);
    let is_measured = rows > 100_000;
    let lab = Lab::new(kind).await;
    let (store, mut dba) = (lab.ready().await, lab.session().await);
    for from in (0..rows).step_by(20_000) {
        insert_done(kind, &mut dba, "mq_consume_record", from, 20_000.min(rows - from)).await;
    }
    if kind == Kind::Postgres {
        dba.must("ANALYZE mq_consume_record").await;
    }
    let quiet = Instant::now() + Duration::from_secs(if is_measured { 20 } else { 2 });
    let without = latencies(Arc::clone(&store), 0, || Instant::now() > quiet).await;
    let purging = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let begun = Instant::now();
            (store.purge().await, begun.elapsed())
        })
    };
    let with = latencies(Arc::clone(&store), 1, || purging.is_finished()).await;
    let (purged, took) = purging.await.expect("no panic");
    assert_eq!(purged, Ok(rows));
    let show = |all: &[Duration]| {
        format!("p50 {:?}, p99 {:?}, worst {:?} of {}", percentile(all, 50), percentile(all, 99), all[all.len() - 1], all.len())
    };
    eprintln!("{kind:?}: {rows} rows in {took:?}; claims without: {}; with: {}", show(&without), show(&with));
    // So few of them say little about the worst.
    let bound = if is_measured { percentile(&without, 99) * 3 } else { percentile(&without, 99) * 5 + Duration::from_millis(50) };
    assert!(percentile(&with, 99) <= bound, "{:?} > {bound:?}", percentile(&with, 99));
}
