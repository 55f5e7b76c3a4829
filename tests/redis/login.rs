//! Users, passwords and ways to reach a server.

use mqguard::idempotency::{Claim, RedisStore, Store, StoreError};

use crate::server::Server;
use crate::{request, store};

async fn refused(url: &str) -> String {
    let store = store(url);
    let answers = [store.ping().await, store.claim(&request("1")).await.map(drop), store.warnings().await.map(drop)];
    let [why, ..] = answers.map(|answer| match answer {
        Err(StoreError::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    });
    let shown = format!("{why} {store:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("wrong-secret"), "{shown}");
    shown
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_wrong_password_is_refused_and_never_shown() {
    let server = Server::with(&["--requirepass", "hunter2/@#"]);
    let port = server.port;
    let why = refused(&format!("redis://:wrong-secret@127.0.0.1:{port}")).await;
    assert!(why.contains("WRONGPASS") && why.contains(&format!("127.0.0.1:{port}")), "{why}");
    let why = refused(&format!("redis://nobody:wrong-secret@127.0.0.1:{port}")).await;
    assert!(why.contains("WRONGPASS"), "{why}");
    let why = refused(&server.url()).await;
    assert!(why.contains("NOAUTH"), "{why}");

    let right = store(&format!("redis://:hunter2%2F%40%23@127.0.0.1:{port}"));
    assert_eq!(right.claim(&request("1")).await, Ok(Claim::Granted { crashes: 0 }));
    assert!(!format!("{right:?}").contains("hunter2"), "{right:?}");
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_user_with_just_the_needed_commands_suffices_and_with_less_is_refused_at_once() {
    let server = Server::start();
    let mut client = server.client();
    let needed = "+evalsha +eval +set +get +pttl";
    client.run(&format!("ACL SETUSER guard on >hunter2 ~mq:dedup:* {needed}"));
    let url = format!("redis://guard:hunter2@127.0.0.1:{}", server.port);
    let guard = store(&url);
    assert_eq!(guard.ping().await, Ok(()));
    assert_eq!(guard.claim(&request("1")).await, Ok(Claim::Granted { crashes: 0 }));
    let warnings = guard.warnings().await.expect("an answer");
    assert!(matches!(&warnings[..], [one] if one.contains("could not be checked") && one.contains("NOPERM")), "{warnings:?}");

    for command in needed.split(' ').map(|command| command.trim_start_matches('+')).filter(|&command| command != "eval") {
        client.run(&format!("ACL SETUSER guard -{command}"));
        let answer = store(&url).ping().await;
        assert!(matches!(&answer, Err(StoreError::Refused(why)) if !why.contains("hunter2")), "without {command}: {answer:?}");
        client.run(&format!("ACL SETUSER guard +{command}"));
    }
    assert_eq!(store(&url).ping().await, Ok(()));
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_unix_socket_can_be_used() {
    let server = Server::with(&["--unixsocket", "redis.sock"]);
    let path = server.directory.join("redis.sock");
    let store = store(&format!("redis+unix://{}?db=1", path.display()));
    assert_eq!(store.claim(&request("1")).await, Ok(Claim::Granted { crashes: 0 }));
    let mut client = server.client();
    client.run("SELECT 1");
    assert_eq!(client.run("DBSIZE").number(), 1);
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn tls_is_refused_without_its_feature_and_fails_cleanly_against_a_plain_server() {
    let server = Server::start();
    let url = server.url().replace("redis://", "rediss://");
    match RedisStore::new(&url) {
        Ok(store) => {
            let answer = store.ping().await;
            assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
        }
        Err(why) => assert!(why.to_string().contains("feature `tls`"), "{why}"),
    }
}
