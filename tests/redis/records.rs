//! What is stored.

use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{Claim, ClaimRequest, Owner, Settled, Step, Store, StoreError, Turn};
use tokio::task::JoinSet;

use crate::server::{Reply, Server};
use crate::stored::{Stored, look};
use crate::{LEASE, hold, key, request, store};

const HOUR: i64 = 3_600_000;

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_record_explains_itself_and_has_an_expiry_in_every_state() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    let claim = request("0193f9a2 \"x\" [\"\n");
    let mut look = || look(&mut client, &claim);
    let hours = |stored: &Stored, hours: i64| {
        assert!((hours * HOUR - 60_000..=hours * HOUR).contains(&stored.pttl), "{} is not {hours} h", stored.pttl);
        assert_eq!(stored.kept, hours * HOUR);
    };

    assert_eq!(store.claim(&claim).await, Ok(Claim::Granted { crashes: 0 }));
    let first = look();
    assert_eq!((&*first.state, &*first.turn, &*first.crashes), ("processing", "0.0", "0"));
    assert_eq!((first.owner.clone(), first.lease), (claim.owner.to_string(), 60_000));
    assert_eq!(first.shown, ["order.process", "42", "0193f9a2 \"x\" [\"\n"]);
    assert_eq!((&first.letter, &first.error), (&None, &None));
    hours(&first, 24);

    store.settle(&hold(&claim), &Step::Release { next: Turn { generation: 0, step: 1 } }).await.expect("an answer");
    let stored = look();
    assert_eq!((&*stored.state, &*stored.turn, stored.lease), ("pending", "0.1", 0));
    hours(&stored, 24);

    let again = ClaimRequest { turn: Turn { generation: 0, step: 1 }, ..claim.clone() };
    store.claim(&again).await.expect("an answer");
    store.settle(&hold(&claim), &Step::Condemn { error: "no \" [\"stock".into(), lease: LEASE }).await.expect("an answer");
    let stored = look();
    assert_eq!(
        (&*stored.state, stored.letter.as_deref(), stored.error.as_deref()),
        ("failed", Some("owed"), Some("no \" [\"stock"))
    );
    assert_eq!(stored.lease, 60_000);
    hours(&stored, 30 * 24);

    store.settle(&hold(&claim), &Step::Lettered).await.expect("an answer");
    let stored = look();
    assert_eq!((&*stored.state, stored.letter.as_deref(), &stored.error), ("failed", Some("out"), &None));
    assert_eq!(stored.lease, 0);
    hours(&stored, 24);

    let replay = ClaimRequest { turn: Turn { generation: 1, step: 0 }, ..claim.clone() };
    store.claim(&replay).await.expect("an answer");
    assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
    let stored = look();
    assert_eq!((&*stored.state, &*stored.turn, stored.lease), ("success", "1.0", 0));
    assert_eq!((&stored.letter, &stored.error), (&None, &None), "nothing is kept of the failure");
    assert_eq!(stored.shown, first.shown);
    hours(&stored, 24);
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
    client.run(&format!("SET {} x", key(&claims[2])));
    let unheard = format!("{} unheard kept=9 lease=9 turn=0.0 crashes=0 body=0 [\"\",\"\",\"\"]", Owner::random());
    assert_eq!(client.ask_words(&["SET", &key(&claims[3]), &unheard]), Reply::Text("OK".into()));
    let reasons = ["another type", "another type", "is not a record", "its state `unheard` is not a known one"];

    for _ in 0..20 {
        let mut asking = JoinSet::new();
        for claim in claims.clone() {
            let store = Arc::clone(&store);
            asking.spawn(async move { (store.claim(&claim).await, claim) });
        }
        while let Some(asked) = asking.join_next().await {
            let (answer, claim) = asked.expect("no panic");
            let nth: usize = claim.identity.message_id().parse().expect("a number");
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
    assert_eq!(client.run(&format!("GET {}", key(&claims[2]))).text(), "x");
    assert_eq!(client.run(&format!("GET {}", key(&claims[3]))).text(), unheard);
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
