//! Servers and connections that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mqguard::idempotency::{Claim, Settled, Step, Store, StoreError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::server::{Reply, Server};
use crate::stored::look;
use crate::{hold, key, request, store};

const GRANTED: Result<Claim, StoreError> = Ok(Claim::Granted { crashes: 0 });

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_connection_cut_in_a_claim_leaves_no_record_without_expiry() {
    const CONNECTIONS: usize = 100;
    let server = Server::start();
    let direct = store(&server.url());
    assert_eq!(direct.claim(&request("warm")).await, GRANTED);

    // Passes on the greeting and its answer, then some bytes of the claim; cuts in the middle of it, or instead of its answer.
    let proxy = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("redis://{}", proxy.local_addr().expect("an address"));
    let upstream = server.port;
    tokio::spawn(async move {
        for nth in 0..CONNECTIONS {
            let (mut client, _) = proxy.accept().await.expect("a connection");
            let mut server = TcpStream::connect(("127.0.0.1", upstream)).await.expect("the server is there");
            let mut greeting = [0; "*1\r\n$4\r\nPING\r\n".len()];
            client.read_exact(&mut greeting).await.expect("a greeting");
            server.write_all(&greeting).await.expect("passed on");
            let mut pong = [0; "+PONG\r\n".len()];
            server.read_exact(&mut pong).await.expect("an answer");
            client.write_all(&pong).await.expect("passed on");
            let mut claim = vec![0; 4_096];
            let length = client.read(&mut claim).await.expect("a claim");
            let some = (length * (nth + 1) / (CONNECTIONS / 2)).min(length);
            server.write_all(&claim[..some]).await.expect("passed on");
            if some == length {
                // The server has answered: it has run the claim.
                server.read_exact(&mut [0]).await.expect("an answer");
            }
        }
    });
    let claims: Vec<_> = (0..CONNECTIONS).map(|id| request(&id.to_string())).collect();
    for claim in &claims {
        let answer = store(&url).claim(claim).await;
        assert!(matches!(&answer, Err(StoreError::Unavailable(why)) if why.contains("lost the connection")), "{answer:?}");
    }

    let mut client = server.client();
    let keys = client.run("KEYS *").list();
    assert!(keys.len() > CONNECTIONS / 2 && keys.len() < CONNECTIONS, "{} claims got through", keys.len());
    for key in keys {
        assert!(client.run(&format!("PTTL {key}")).number() > 0, "{key} would stay for ever");
    }
    // Whether it got through or not: asked again by the same owner it is answered as if nothing had happened.
    for claim in &claims {
        assert_eq!(direct.claim(claim).await, GRANTED);
    }
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn forgotten_scripts_are_loaded_again() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    for round in 0..10 {
        let mut asking = JoinSet::new();
        for id in 0..20 {
            let store = Arc::clone(&store);
            asking.spawn(async move {
                let claim = request(&format!("{round}.{id}"));
                assert_eq!(store.claim(&claim).await, GRANTED);
                assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
            });
        }
        client.run("SCRIPT FLUSH");
        while let Some(asked) = asking.join_next().await {
            asked.expect("no panic");
        }
    }
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_server_that_comes_back_is_used_again() {
    let mut server = Server::start();
    let store = store(&server.url());
    assert_eq!(store.claim(&request("1")).await, GRANTED);
    server.stop();
    let start = Instant::now();
    for _ in 0..100 {
        let answer = store.claim(&request("2")).await;
        assert!(matches!(&answer, Err(StoreError::Unavailable(why)) if why.contains(&server.port.to_string())), "{answer:?}");
    }
    assert!(start.elapsed() < Duration::from_secs(3), "a server that is down is told of at once: {:?}", start.elapsed());
    server.run();
    let end = Instant::now() + Duration::from_secs(10);
    let claim = request("3");
    while store.claim(&claim).await != GRANTED {
        assert!(Instant::now() < end, "not used again");
        tokio::task::yield_now().await;
    }
    assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_connection_that_was_closed_while_idle_is_replaced_without_an_error() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    for id in 0..10 {
        assert_eq!(store.claim(&request(&id.to_string())).await, GRANTED);
        assert_eq!(client.run("CLIENT KILL TYPE normal SKIPME yes"), Reply::Number(1));
    }
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_server_that_is_down_is_not_hammered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let store = store(&format!("redis://{}", listener.local_addr().expect("an address")));
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        // Accepts and closes.
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let start = Instant::now();
    let mut claims = 0;
    while start.elapsed() < Duration::from_millis(500) {
        let answer = store.claim(&request("1")).await;
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
        claims += 1;
    }
    let connections = connections.load(Ordering::Relaxed);
    assert!(claims > 100 && connections <= 4, "{claims} claims made {connections} connections");
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_server_that_does_not_answer_is_given_up() {
    let mute = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let store = store(&format!("redis://{}", mute.local_addr().expect("an address")));
    let start = Instant::now();
    let answer = store.claim(&request("1")).await;
    assert!(matches!(&answer, Err(StoreError::Unavailable(why)) if why.contains("no answer within 5 s")), "{answer:?}");
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_frozen_server_is_given_up_and_used_again_when_it_thaws() {
    let server = Server::start();
    let store = store(&server.url());
    assert_eq!(store.claim(&request("1")).await, GRANTED);
    server.signal("STOP");
    let claim = request("2");
    let answer = store.claim(&claim).await;
    assert!(matches!(&answer, Err(StoreError::Unavailable(why)) if why.contains("no answer within 5 s")), "{answer:?}");
    server.signal("CONT");
    let end = Instant::now() + Duration::from_secs(10);
    while store.claim(&claim).await != GRANTED {
        assert!(Instant::now() < end, "not used again");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_full_server_refuses_a_claim_whole_and_it_passes() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    let settled = request("1");
    assert_eq!(store.claim(&settled).await, GRANTED);
    client.run("CONFIG SET maxmemory 1");
    let claim = request("2");
    for answer in
        [store.claim(&claim).await.map(drop), store.settle(&hold(&settled), &Step::Complete).await.map(drop), store.ping().await]
    {
        assert!(matches!(&answer, Err(StoreError::Unavailable(why)) if why.contains("OOM")), "{answer:?}");
    }
    assert_eq!(client.run(&format!("EXISTS {}", key(&claim))).number(), 0);
    assert_eq!(look(&mut client, &settled).state, "processing");
    client.run("CONFIG SET maxmemory 0");
    assert_eq!(store.claim(&claim).await, GRANTED);
    assert_eq!(store.settle(&hold(&settled), &Step::Complete).await, Ok(Settled::Applied));
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_replica_is_not_available() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    assert_eq!(store.ping().await, Ok(()));
    client.run("REPLICAOF 127.0.0.1 1");
    for _ in 0..3 {
        let answer = store.claim(&request("1")).await;
        assert!(matches!(&answer, Err(StoreError::Unavailable(why)) if why.contains("READONLY")), "{answer:?}");
    }
    client.run("REPLICAOF NO ONE");
    assert_eq!(store.claim(&request("1")).await, GRANTED);
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_server_without_a_free_connection_is_not_available() {
    let server = Server::start();
    let mut one = server.client();
    one.run("CONFIG SET maxclients 1");
    let store = store(&server.url().replace("redis://", "redis://:hunter2@"));
    let answer = store.claim(&request("1")).await;
    assert!(matches!(&answer, Err(StoreError::Unavailable(why)) if why.contains("max number of clients")), "{answer:?}");
    drop(one);
}
