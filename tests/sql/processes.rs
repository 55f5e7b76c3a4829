//! Many processes, each with a store of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mqguard::idempotency::{Claim, ClaimRequest, Mode, Owner, Settled, Step, Store, StoreError, Turn};
use tokio::task::JoinSet;

use crate::database::{Kind, Lab, Records};
use crate::{GRANTED, LEASE, MODES, by_another, claim_all, hold, request, settle_all};

on_each! {
    each_message_is_granted_once_to_many_processes,
    each_lapsed_message_is_taken_over_once_by_many_processes,
    statements_in_different_orders_do_not_fail,
    a_renewal_and_a_takeover_exclude_each_other,
    what_was_done_is_told_though_others_were_faster_at_some_of_it,
}

/// SQLite writes to the disk for each batch, one process at a time.
fn scale(kind: Kind) -> (usize, usize) {
    if kind == Kind::Sqlite { (8, 300) } else { (16, 1_000) }
}

/// Claims of all messages by each of the stores, at once; how often each was granted, and to whom.
async fn granted(stores: &[Arc<dyn Store>], messages: &[ClaimRequest]) -> HashMap<String, Vec<ClaimRequest>> {
    let mut asking = JoinSet::new();
    for (nth, store) in stores.iter().enumerate() {
        for place in 0..messages.len() {
            // Each in an order of its own.
            let message = by_another(&messages[(place * (2 * nth + 1) + 37 * nth) % messages.len()]);
            let store = Arc::clone(store);
            asking.spawn(async move {
                let mut answer = store.claim(&message).await;
                // On a busy machine; asked again by the same owner, as a consumer does.
                for _ in 0..20 {
                    if !matches!(answer, Err(StoreError::Unavailable(_))) {
                        break;
                    }
                    answer = store.claim(&message).await;
                }
                (message, answer)
            });
        }
    }
    let mut granted = HashMap::<String, Vec<ClaimRequest>>::new();
    while let Some(asked) = asking.join_next().await {
        match asked.expect("no panic") {
            (message, Ok(Claim::Granted { .. })) => {
                granted.entry(message.identity.message_id().to_owned()).or_default().push(message);
            }
            (_, Ok(Claim::Busy { .. })) => {}
            (message, answer) => panic!("{}: {answer:?}", message.identity),
        }
    }
    granted
}

async fn each_message_is_granted_once_to_many_processes(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    for mode in MODES {
        let (processes, count) = scale(kind);
        let stores: Vec<_> = (0..processes).map(|_| lab.store_in(mode)).collect();
        let messages: Vec<_> = (0..count).map(|nth| request(&nth.to_string())).collect();
        let begun = Instant::now();
        let granted = granted(&stores, &messages).await;
        eprintln!("{kind:?} {mode:?}: {} claims by {processes} in {:?}", processes * count, begun.elapsed());
        assert_eq!(granted.len(), count);
        assert!(granted.values().all(|owners| owners.len() == 1));
        // Whichever store is told.
        for (nth, owners) in granted.values().take(50).enumerate() {
            let store = &stores[nth % processes];
            assert_eq!(store.settle(&hold(&by_another(&owners[0])), &Step::Complete).await, Ok(Settled::Refused));
            assert_eq!(store.settle(&hold(&owners[0]), &Step::Complete).await, Ok(Settled::Applied));
        }
    }
}

async fn each_lapsed_message_is_taken_over_once_by_many_processes(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    for mode in MODES {
        let (processes, count) = scale(kind);
        let stores: Vec<_> = (0..processes).map(|_| lab.store_in(mode)).collect();
        let mut messages: Vec<_> = (0..count).map(|nth| request(&nth.to_string())).collect();
        for message in &mut messages {
            message.lease = Duration::from_millis(1);
        }
        // All of them by the first, which dies.
        let first = granted(&stores[..1], &messages).await;
        assert_eq!(first.len(), count);
        tokio::time::sleep(Duration::from_millis(20)).await;
        for message in &mut messages {
            message.lease = Duration::from_secs(600);
        }
        let begun = Instant::now();
        let second = granted(&stores, &messages).await;
        eprintln!("{kind:?} {mode:?}: {} takeovers by {processes} in {:?}", processes * count, begun.elapsed());
        assert_eq!(second.len(), count);
        assert!(second.values().all(|owners| owners.len() == 1));
        late_owners_are_refused(&stores, &first, &second).await;
    }
}

async fn late_owners_are_refused(
    stores: &[Arc<dyn Store>],
    first: &HashMap<String, Vec<ClaimRequest>>,
    second: &HashMap<String, Vec<ClaimRequest>>,
) {
    let mut asking = JoinSet::new();
    for (nth, (owners, expected)) in first
        .values()
        .map(|owners| (owners, Settled::Refused))
        .chain(second.values().map(|owners| (owners, Settled::Applied)))
        .enumerate()
    {
        let (store, hold) = (Arc::clone(&stores[nth % stores.len()]), hold(&owners[0]));
        asking.spawn(async move { assert_eq!(store.settle(&hold, &Step::Complete).await, Ok(expected)) });
    }
    while let Some(asked) = asking.join_next().await {
        asked.expect("no panic");
    }
}

/// Whole lives of the same few messages, of which each store asks in an order of its own.
async fn statements_in_different_orders_do_not_fail(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    let rounds = if kind == Kind::Sqlite { 3 } else { 12 };
    let mut working = JoinSet::new();
    for nth in 0..6u64 {
        let store = lab.store();
        for message in 0..40u64 {
            let store = Arc::clone(&store);
            let mut claim = request(&format!("{:02}", (message * (2 * nth + 1)) % 40));
            claim.lease = Duration::from_millis(1);
            claim.max_crashes = u32::MAX;
            working.spawn(async move {
                for _ in 0..rounds {
                    claim.owner = Owner::random();
                    let answer = store.claim(&claim).await.expect("an answer");
                    if let Claim::Granted { .. } = answer {
                        let settled = store.settle(&hold(&claim), &Step::Renew { lease: claim.lease }).await;
                        settled.expect("an answer");
                        let next = Step::Release { next: claim.turn };
                        store.settle(&hold(&claim), &next).await.expect("an answer");
                    }
                }
            });
        }
    }
    let begun = Instant::now();
    while let Some(done) = working.join_next().await {
        done.expect("no panic");
    }
    eprintln!("{kind:?}: {:?}", begun.elapsed());
}

/// Of a lapsed lease: it is the owner's until somebody else has claimed.
async fn a_renewal_and_a_takeover_exclude_each_other(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, other) = (lab.ready().await, lab.ready().await);
    let rounds = if kind == Kind::Sqlite { 10 } else { 80 };
    let mut taken = 0;
    for round in 0..rounds {
        let mut claims: Vec<_> = (0..20).map(|nth| request(&format!("{round} {nth}"))).collect();
        claims.iter_mut().for_each(|claim| claim.lease = Duration::from_millis(1));
        assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED));
        tokio::time::sleep(Duration::from_millis(5)).await;
        let hers: Vec<_> = claims.iter().map(|claim| ClaimRequest { lease: LEASE, ..by_another(claim) }).collect();
        // Hers takes some statements more.
        let a_little_later = async {
            tokio::time::sleep(Duration::from_micros(200 * (round % 20))).await;
            settle_all(&store, &claims, &Step::Renew { lease: LEASE }).await
        };
        let (renewed, claimed) = tokio::join!(a_little_later, claim_all(&other, &hers));
        for answers in renewed.iter().zip(&claimed) {
            match answers {
                (Ok(Settled::Applied), Ok(Claim::Busy { .. })) => {}
                (Ok(Settled::Refused), Ok(Claim::Granted { crashes: 1 })) => taken += 1,
                _ => panic!("round {round}: {answers:?}"),
            }
        }
    }
    eprintln!("{kind:?}: {taken} of {} were taken over", rounds * 20);
}

/// One message after the other is released and claimed again in one batch, in which there are others that another process takes over:
/// a release that was done must not be refused because the next owner is there already.
async fn what_was_done_is_told_though_others_were_faster_at_some_of_it(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, other) = (lab.ready().await, lab.ready().await);
    let rounds = if kind == Kind::Sqlite { 10 } else { 60 };
    let mut taken = 0;
    for round in 0..rounds {
        let mine: Vec<_> = (0..8).map(|nth| request(&format!("{round} a{nth}"))).collect();
        let mut contested: Vec<_> = (0..8).map(|nth| request(&format!("{round} b{nth}"))).collect();
        contested.iter_mut().for_each(|claim| claim.lease = Duration::from_millis(1));
        for claims in [&mine, &contested] {
            assert!(claim_all(&store, claims).await.iter().all(|answer| *answer == GRANTED));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        let step = Step::Release { next: Turn { generation: 0, step: 1 } };
        let (hers, next): (Vec<_>, Vec<_>) = (
            contested.iter().map(|claim| ClaimRequest { lease: LEASE, ..by_another(claim) }).collect(),
            mine.iter().map(|claim| ClaimRequest { turn: Turn { generation: 0, step: 1 }, ..by_another(claim) }).collect(),
        );
        let again: Vec<_> = contested.iter().map(|claim| ClaimRequest { lease: LEASE, ..by_another(claim) }).collect();
        // The first three travel together.
        let (released, claimed, against, theirs) = tokio::join!(
            settle_all(&store, &mine, &step),
            claim_all(&store, &next),
            claim_all(&store, &again),
            claim_all(&other, &hers),
        );
        assert!(released.iter().all(|answer| *answer == Ok(Settled::Applied)), "round {round}: {released:?}");
        assert!(claimed.iter().all(|answer| *answer == GRANTED), "round {round}: {claimed:?}");
        for (one, two) in against.iter().zip(&theirs) {
            let granted = [one, two].map(|answer| *answer == Ok(Claim::Granted { crashes: 1 }));
            assert!(granted[0] != granted[1], "round {round}: {one:?} {two:?}");
            taken += usize::from(granted[1]);
        }
    }
    eprintln!("{kind:?}: the other took {taken} of {}", rounds * 8);
}

/// The statements of a user, as MariaDB counts them when asked to.
#[tokio::test]
#[ignore = "needs MariaDB: cargo xtask test"]
async fn concurrent_callers_share_the_statements_of_mariadb() {
    let lab = Lab::new(Kind::MariaDb).await;
    lab.ready().await;
    let (user, mut admin) = (lab.user().await, lab.session().await);
    lab.grant("SELECT, INSERT, UPDATE, DELETE", None, &user).await;
    admin.must("SET GLOBAL userstat = 1").await;
    let store = Records::new(Kind::MariaDb, &lab.url_of(&user)).expect("a usable URL");
    store.ping().await.expect("it can be used");
    let sql = format!(
        "SELECT CAST(select_commands + update_commands + other_commands AS SIGNED) FROM information_schema.user_statistics
         WHERE user = '{user}'"
    );
    let before = admin.numbers(&sql).await.first().copied().unwrap_or(0);
    claims_and_completes(Arc::new(store), 200).await;
    let statements = admin.number(&sql).await - before;
    eprintln!("MariaDB: 400 questions took {statements} statements");
    assert!(statements > 0 && statements < 40, "400 questions took {statements} statements");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn concurrent_callers_share_the_transactions_of_postgresql() {
    let lab = Lab::new(Kind::Postgres).await;
    lab.ready().await;
    let mut admin = Kind::Postgres.admin().await;
    let begun = transactions(&lab, &mut admin).await;
    let store = lab.ready().await;
    claims_and_completes(store, 200).await;
    let statements = transactions(&lab, &mut admin).await - begun;
    eprintln!("PostgreSQL: 400 questions and a login took {statements} transactions");
    assert!(statements > 0 && statements < 40, "400 questions took {statements} statements");
}

/// Counted by sessions when they end.
async fn transactions(lab: &Lab, admin: &mut crate::session::Session) -> i64 {
    let sessions = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{}'", lab.name);
    let end = Instant::now() + Duration::from_secs(10);
    while admin.number(&sessions).await > 0 {
        assert!(Instant::now() < end, "sessions are left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    admin.number(&format!("SELECT xact_commit FROM pg_stat_database WHERE datname = '{}'", lab.name)).await
}

async fn claims_and_completes(store: Arc<dyn Store>, count: usize) {
    let mut asking = JoinSet::new();
    for id in 0..count {
        let store = Arc::clone(&store);
        asking.spawn(async move {
            let claim = request(&id.to_string());
            assert_eq!(store.claim(&claim).await, GRANTED);
            assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked.expect("no panic");
    }
}

/// The records of the two modes do not mix.
#[tokio::test]
async fn the_modes_of_a_store_have_tables_of_their_own() {
    let lab = Lab::new(Kind::Sqlite).await;
    let (unique, log) = (lab.store_in(Mode::Unique), lab.store_in(Mode::StateMachine));
    let claim = request("1");
    assert_eq!(unique.claim(&claim).await, GRANTED);
    assert_eq!(log.claim(&by_another(&claim)).await, GRANTED);
    assert_eq!(log.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Refused));
}
