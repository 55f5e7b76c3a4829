//! Many questions in one command.

use std::sync::Arc;

use mqguard::idempotency::{Claim, Settled, Step, Store, StoreError};
use tokio::task::JoinSet;

use crate::server::{Client, Server};
use crate::{hold, key, request, store, teach};

/// How many scripts the server has run.
fn scripts(client: &mut Client) -> u64 {
    let text = client.run("INFO commandstats").text();
    let calls = |line: &str| -> Option<u64> { line.split_once("calls=")?.1.split(',').next()?.parse().ok() };
    text.lines().filter(|line| line.starts_with("cmdstat_eval")).filter_map(calls).sum()
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn concurrent_callers_share_round_trips() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    store.ping().await.expect("it can be used");
    let before = (client.info("stats", "total_reads_processed"), scripts(&mut client));
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
    let reads = client.info("stats", "total_reads_processed") - before.0;
    assert!(reads < 40, "400 questions took {reads} reads");
    let scripts = scripts(&mut client) - before.1;
    assert!(scripts < 20, "400 questions took {scripts} scripts");
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn one_of_ten_that_is_no_record_fails_alone() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    let claims: Vec<_> = (0..10).map(|id| request(&id.to_string())).collect();
    client.run(&format!("LPUSH {} x", key(&claims[5])));
    let unusable = |why: StoreError| matches!(&why, StoreError::Unusable { key: named, .. } if *named == key(&claims[5]));

    teach(&store).await;
    let before = scripts(&mut client);
    // On a runtime of one thread, what is asked before the next await travels together.
    let asked: Vec<_> = claims
        .iter()
        .map(|claim| {
            let (store, claim) = (Arc::clone(&store), claim.clone());
            tokio::spawn(async move { store.claim(&claim).await })
        })
        .collect();
    for (nth, asked) in asked.into_iter().enumerate() {
        match asked.await.expect("no panic") {
            Err(why) if nth == 5 => assert!(unusable(why)),
            answer => assert_eq!((nth == 5, answer), (false, Ok(Claim::Granted { crashes: 0 })), "{nth}"),
        }
    }
    let asked: Vec<_> = claims
        .iter()
        .map(|claim| {
            let (store, hold) = (Arc::clone(&store), hold(claim));
            tokio::spawn(async move { store.settle(&hold, &Step::Complete).await })
        })
        .collect();
    for (nth, asked) in asked.into_iter().enumerate() {
        match asked.await.expect("no panic") {
            Err(why) if nth == 5 => assert!(unusable(why)),
            answer => assert_eq!((nth == 5, answer), (false, Ok(Settled::Applied)), "{nth}"),
        }
    }
    assert_eq!(scripts(&mut client) - before, 2, "one claim that meets a record, then ten steps");
    assert_eq!(client.run(&format!("TYPE {}", key(&claims[5]))).text(), "list", "it was left alone");
}
