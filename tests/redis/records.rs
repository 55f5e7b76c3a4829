//! What is stored.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{Claim, ClaimRequest, Settled, Step, Store, StoreError, Turn};
use tokio::task::JoinSet;

use crate::server::Server;
use crate::{LEASE, hold, key, request, store};

const HOUR: i64 = 3_600_000;

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_record_explains_itself_and_has_an_expiry_in_every_state() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    let claim = request("0193f9a2");
    let key = key(&claim);
    let mut look = || -> HashMap<String, String> {
        let fields = client.run(&format!("HGETALL {key}")).list();
        let pttl = client.run(&format!("PTTL {key}")).number();
        let mut fields: HashMap<_, _> = fields.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        fields.insert("pttl".into(), pttl.to_string());
        fields
    };
    let hours = |fields: &HashMap<String, String>, hours: i64| {
        let pttl: i64 = fields["pttl"].parse().expect("a number");
        assert!((hours * HOUR - 60_000..=hours * HOUR).contains(&pttl), "{pttl} is not {hours} h");
    };

    assert_eq!(store.claim(&claim).await, Ok(Claim::Granted { crashes: 0 }));
    let fields = look();
    for (name, value) in [
        ("state", "processing"),
        ("turn", "0.0"),
        ("owner", &claim.owner.to_string()),
        ("crashes", "0"),
        ("consumer", "order.process"),
        ("key", "42"),
        ("message_id", "0193f9a2"),
    ] {
        assert_eq!(fields[name], value, "{name}");
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis();
    let until: u128 = fields["lease_until"].parse().expect("whole milliseconds");
    assert!(until.abs_diff(now + 60_000) < 10_000, "{until}");
    assert_eq!(fields.len(), 9, "{fields:?}");
    hours(&fields, 24);

    store.settle(&hold(&claim), &Step::Release { next: Turn { generation: 0, step: 1 } }).await.expect("an answer");
    let fields = look();
    assert_eq!((fields["state"].as_str(), fields["turn"].as_str(), fields.get("lease_until")), ("pending", "0.1", None));
    hours(&fields, 24);

    let again = ClaimRequest { turn: Turn { generation: 0, step: 1 }, ..claim.clone() };
    store.claim(&again).await.expect("an answer");
    store.settle(&hold(&claim), &Step::Condemn { error: "no stock".into(), lease: LEASE }).await.expect("an answer");
    let fields = look();
    assert_eq!((&*fields["state"], &*fields["letter"], &*fields["error"]), ("failed", "owed", "no stock"));
    hours(&fields, 30 * 24);

    store.settle(&hold(&claim), &Step::Lettered).await.expect("an answer");
    let fields = look();
    assert_eq!((&*fields["state"], &*fields["letter"], fields.get("error")), ("failed", "out", None));
    hours(&fields, 24);

    let replay = ClaimRequest { turn: Turn { generation: 1, step: 0 }, ..claim.clone() };
    store.claim(&replay).await.expect("an answer");
    assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
    let fields = look();
    assert_eq!((&*fields["state"], &*fields["turn"]), ("success", "1.0"));
    assert_eq!(fields.len(), 8, "nothing is kept of the failure: {fields:?}");
    hours(&fields, 24);
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn the_longest_lease_and_retention_leave_an_expiry() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    let mut claim = request("1");
    (claim.lease, claim.ttl) = (Duration::MAX, Duration::MAX);
    assert_eq!(store.claim(&claim).await, Ok(Claim::Granted { crashes: 0 }));
    assert!(client.run(&format!("PTTL {}", key(&claim))).number() > 0);
    assert!(matches!(store.claim(&request("1")).await, Ok(Claim::Busy { .. })));
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn what_is_not_a_record_fails_alone() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    let claims: Vec<_> = (1..=10).map(|id| request(&id.to_string())).collect();
    client.run(&format!("LPUSH {} x", key(&claims[0])));
    client.run(&format!("HSET {} name x", key(&claims[1])));
    client.run(&format!("HSET {} state processing turn x", key(&claims[2])));
    client.run(&format!("HSET {} state unheard turn 0.0", key(&claims[3])));
    let reasons = ["another type", "no field `state`", "`turn` is not a turn", "`state` is not a known state"];

    for _ in 0..20 {
        let mut asking = JoinSet::new();
        for claim in claims.clone() {
            let store = Arc::clone(&store);
            asking.spawn(async move { (store.claim(&claim).await, claim) });
        }
        while let Some(asked) = asking.join_next().await {
            let (answer, claim) = asked.expect("no panic");
            let nth: usize = claim.identity.message_id.parse().expect("a number");
            match (reasons.get(nth - 1), answer) {
                (Some(why), Err(StoreError::Unusable { key: named, reason })) => {
                    assert_eq!(named, key(&claim));
                    assert!(reason.contains(why), "{reason}");
                }
                (None, answer) => assert_eq!(answer, Ok(Claim::Granted { crashes: 0 }), "{nth}"),
                (Some(_), answer) => panic!("{nth}: {answer:?}"),
            }
        }
    }
    let settled = store.settle(&hold(&claims[0]), &Step::Complete).await;
    assert!(matches!(settled, Err(StoreError::Unusable { .. })), "{settled:?}");
    assert_eq!(client.run(&format!("TYPE {}", key(&claims[0]))).text(), "list", "it was left alone");
    assert_eq!(client.run(&format!("HGETALL {}", key(&claims[1]))).list(), ["name", "x"]);
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn concurrent_callers_share_round_trips() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    store.ping().await.expect("it can be used");
    let reads = client.info("stats", "total_reads_processed");
    let mut asking = JoinSet::new();
    for id in 0..200 {
        let store = Arc::clone(&store);
        asking.spawn(async move {
            let claim = request(&id.to_string());
            assert_eq!(store.claim(&claim).await, Ok(Claim::Granted { crashes: 0 }));
            assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked.expect("no panic");
    }
    // Each round trip is one read of the server, or a few: its buffer is smaller than 200 claims.
    let reads = client.info("stats", "total_reads_processed") - reads;
    assert!(reads < 40, "400 questions took {reads} reads");
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_ping_uses_the_store_and_leaves_nothing() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    store.ping().await.expect("it can be used");
    assert_eq!(client.run("DBSIZE").number(), 0);
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn an_eviction_policy_is_warned_of() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    assert_eq!(store.warnings().await, Ok(Vec::new()));
    client.run("CONFIG SET maxmemory-policy volatile-lru");
    let warnings = store.warnings().await.expect("an answer");
    assert!(
        matches!(&warnings[..], [one] if one.contains("volatile-lru") && one.contains("No limit is set now")),
        "{warnings:?}"
    );
    client.run("CONFIG SET maxmemory 100mb");
    client.run("CONFIG SET maxmemory-policy allkeys-random");
    let warnings = store.warnings().await.expect("an answer");
    assert!(matches!(&warnings[..], [one] if one.contains("allkeys-random") && one.contains("104857600")), "{warnings:?}");
    assert!(warnings[0].contains("maxmemory-policy noeviction"), "the cure: {warnings:?}");
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn the_database_of_the_url_is_used() {
    let server = Server::start();
    let mut client = server.client();
    let store = store(&format!("{}/3", server.url()));
    store.claim(&request("1")).await.expect("an answer");
    assert_eq!(client.run("DBSIZE").number(), 0);
    client.run("SELECT 3");
    assert_eq!(client.run("DBSIZE").number(), 1);
    let beyond = crate::store(&format!("{}/99", server.url())).claim(&request("1")).await;
    assert!(matches!(&beyond, Err(StoreError::Refused(why)) if why.contains("DB index")), "{beyond:?}");
}
