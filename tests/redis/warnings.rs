//! What is told of a server that can forget records.

use mqguard::idempotency::Store;

use crate::server::Server;
use crate::store;

async fn warnings(server: &Server) -> Vec<String> {
    store(&server.url()).warnings().await.expect("an answer")
}

/// The only warning, which says all of these.
#[track_caller]
fn one(warnings: &[String], parts: &[&str]) {
    let [warning] = warnings else { panic!("not one: {warnings:?}") };
    assert!(parts.iter().all(|part| warning.contains(part)), "{parts:?}: {warning}");
    assert!(warning.len() < 460, "{} bytes: {warning}", warning.len());
}

/// A server of which there is nothing to tell.
fn safe() -> Server {
    Server::with(&["--appendonly", "yes"])
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn an_eviction_policy_is_warned_of() {
    let server = safe();
    let mut client = server.client();
    assert_eq!(warnings(&server).await, [""; 0]);
    client.run("CONFIG SET maxmemory-policy volatile-lru");
    one(&warnings(&server).await, &["volatile-lru", "No limit is set now"]);
    client.run("CONFIG SET maxmemory 100mb");
    client.run("CONFIG SET maxmemory-policy allkeys-random");
    one(&warnings(&server).await, &["allkeys-random", "104857600", "maxmemory-policy noeviction"]);
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_restart_that_forgets_is_warned_of() {
    let server = Server::start();
    let mut client = server.client();
    one(&warnings(&server).await, &["nothing is kept on disk", "forgets every record", "processed again", "`appendonly yes`"]);
    client.ask_words(&["CONFIG", "SET", "save", "3600 1 300 100"]);
    one(&warnings(&server).await, &["only snapshots", "since the last one", "processed again", "`appendonly yes`"]);
    client.run("CONFIG SET appendonly yes");
    assert_eq!(warnings(&server).await, [""; 0]);
    client.run("CONFIG SET appendfsync no");
    one(&warnings(&server).await, &["appendfsync is no", "last 30 s", "processed again", "`appendfsync everysec`"]);
    client.run("CONFIG SET appendfsync always");
    assert_eq!(warnings(&server).await, [""; 0]);
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_failover_that_forgets_is_warned_of() {
    let server = safe();
    let mut client = server.client();
    let port = server.port.to_string();
    let replica = Server::with(&["--replicaof", "127.0.0.1", &port]);
    while client.info("replication", "connected_slaves") == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    one(
        &warnings(&server).await,
        &["it has a replica", "no replica had received", "processed twice", "`min-replicas-to-write 1`"],
    );
    client.run("CONFIG SET min-replicas-to-write 1");
    assert_eq!(warnings(&server).await, [""; 0]);

    client.run("CONFIG SET min-replicas-to-write 0");
    drop(replica);
    while client.info("replication", "connected_slaves") > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(warnings(&server).await, [""; 0], "there is nothing to fail over to");
}

/// A user may be allowed to ask for settings and not for replicas, or for nothing.
#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn what_may_not_be_asked_is_told_in_one_line() {
    let server = safe();
    let mut client = server.client();
    let url = format!("redis://guard:hunter2@127.0.0.1:{}", server.port);
    client.run("ACL SETUSER guard on >hunter2 ~mq:dedup:* +evalsha +eval +set +get +pttl +config");
    let answer = store(&url).warnings().await.expect("an answer");
    one(&answer, &["whether it has replicas could not be checked (NOPERM", "min-replicas-to-write is 0, and"]);
    client.run("CONFIG SET min-replicas-to-write 1");
    assert_eq!(store(&url).warnings().await, Ok(Vec::new()));
    client.run("CONFIG SET min-replicas-to-write 0");
    client.run("ACL SETUSER guard +info");
    assert_eq!(store(&url).warnings().await, Ok(Vec::new()));
    client.run("ACL SETUSER guard -config");
    one(
        &store(&url).warnings().await.expect("an answer"),
        &["could not be checked (NOPERM", "noeviction", "appendonly", "min-replicas"],
    );
}
