//! Where a store is, and servers that do not answer.

use std::time::{Duration, Instant};

use mqguard::idempotency::{Store, StoreError};
use tokio::net::TcpListener;

use crate::database::{Kind, Lab, Records};
use crate::request;

on_each! {
    servers:
    a_refused_login_and_a_missing_database_are_told_without_the_password,
    tls_that_the_server_does_not_speak_is_told,
}

const PASSWORD: &str = "s3cr3t-pa55";

fn must_not_show(shown: &str) {
    assert!(!shown.contains(PASSWORD) && !shown.contains("s3cr3t"), "{shown}");
}

#[test]
fn bad_urls_say_what_is_wrong_and_never_show_the_password() {
    for (kind, url, why) in [
        (Kind::MariaDb, "mysql://me:s3cr3t-pa55@host:3306", "database"),
        (Kind::MariaDb, "mysql://me:s3cr3t-pa55@host:3306/", "database"),
        (Kind::MariaDb, "mysql://me:s3cr3t-pa55@host:port/db", "port"),
        (Kind::MariaDb, "postgres://me:s3cr3t-pa55@host/db", "mysql://"),
        (Kind::MariaDb, "mysql://me:s3cr3t-pa55@host/db?ssl-mode=perhaps", "perhaps"),
        (Kind::MariaDb, "me:s3cr3t-pa55@host/db", "mysql://"),
        (Kind::MariaDb, "", "URL"),
        (Kind::Postgres, "postgres://me:s3cr3t-pa55@host:port/db", "port"),
        (Kind::Postgres, "postgres://me:s3cr3t-pa55@host:5432", "database"),
        (Kind::Postgres, "mysql://me:s3cr3t-pa55@host/db", "postgres://"),
        (Kind::Postgres, "postgres://me:s3cr3t-pa55@host/db?sslmode=perhaps", "perhaps"),
        (Kind::Postgres, "me:s3cr3t-pa55@host/db", "postgres://"),
        (Kind::Sqlite, "sqlite::memory:", "memory"),
        (Kind::Sqlite, "sqlite:", "file"),
        (Kind::Sqlite, "sqlite:records.db?mode=memory", "memory"),
        (Kind::Sqlite, "postgres://me:s3cr3t-pa55@host/db", "sqlite:"),
        (Kind::Sqlite, "sqlite:records.db?mode=perhaps", "perhaps"),
    ] {
        let error = Records::new(kind, url).map(drop).expect_err(url);
        let shown = format!("{error} {error:?}");
        must_not_show(&shown);
        assert!(shown.contains(why), "{url}: {shown}");
    }
}

#[test]
fn stores_never_show_the_password() {
    for (kind, url) in [
        (Kind::MariaDb, "mysql://me:s3cr3t-pa55@host:3306/db"),
        (Kind::MariaDb, "mariadb://me:s3cr3t-pa55@host:3306/db"),
        (Kind::Postgres, "postgres://me:s3cr3t-pa55@host:3306/db"),
        (Kind::Postgres, "postgresql://me:s3cr3t-pa55@host:3306/db"),
        (Kind::Postgres, "postgres://me@host:3306/db?password=s3cr3t-pa55"),
    ] {
        let records = Records::new(kind, url).expect("a usable URL");
        let shown = format!("{records:?} {records:#?} {:?}", records.state_machine());
        must_not_show(&shown);
        assert!(shown.contains("host:3306/db"), "{shown}");
    }
}

async fn a_refused_login_and_a_missing_database_are_told_without_the_password(kind: Kind) {
    let lab = Lab::new(kind).await;
    for (url, why) in [
        (kind.url("nobody", PASSWORD, &lab.name), "nobody"),
        (kind.url("mqguard", PASSWORD, &lab.name), "mqguard"),
        (kind.url("mqguard", "mqguard", "there_is_none"), "there_is_none"),
    ] {
        let records = Records::new(kind, &url).expect("a usable URL");
        let error = records.claim(&request("1")).await.expect_err("it cannot be used");
        assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
        must_not_show(&format!("{error} {error:?}"));
        assert!(error.to_string().contains(why), "{error}");
    }
}

async fn tls_that_the_server_does_not_speak_is_told(kind: Kind) {
    let lab = Lab::new(kind).await;
    let option = if kind == Kind::MariaDb { "ssl-mode=REQUIRED" } else { "sslmode=require" };
    let records = Records::new(kind, &format!("{}?{option}", lab.url())).expect("a usable URL");
    let error = records.ping().await.expect_err("no TLS there");
    assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
    assert!(error.to_string().to_lowercase().contains("tls"), "{error}");
}

#[tokio::test]
async fn an_unknown_host_is_told_without_the_password() {
    for (kind, scheme) in [(Kind::MariaDb, "mysql"), (Kind::Postgres, "postgres")] {
        let records = Records::new(kind, &format!("{scheme}://me:{PASSWORD}@host.invalid:99/db")).expect("a usable URL");
        let error = records.ping().await.expect_err("no such host");
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        must_not_show(&format!("{error} {error:?}"));
        assert!(error.to_string().contains("host.invalid"), "{error}");
    }
}

#[tokio::test]
async fn a_refused_connection_fails_fast() {
    for (kind, scheme) in [(Kind::MariaDb, "mysql"), (Kind::Postgres, "postgres")] {
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("{scheme}://me:{PASSWORD}@{}/db", free.local_addr().expect("an address"));
        drop(free);
        let records = Records::new(kind, &url).expect("a usable URL");
        let begun = Instant::now();
        for _ in 0..1_000 {
            let error = records.claim(&request("1")).await.expect_err("nobody listens");
            assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
            must_not_show(&format!("{error} {error:?}"));
        }
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
}

/// It takes connections, and says nothing.
#[tokio::test]
async fn a_frozen_server_is_not_waited_for_for_ever() {
    let frozen = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = frozen.local_addr().expect("an address");
    for (kind, scheme) in [(Kind::MariaDb, "mysql"), (Kind::Postgres, "postgres")] {
        let records = Records::new(kind, &format!("{scheme}://me:{PASSWORD}@{address}/db")).expect("a usable URL");
        let begun = Instant::now();
        let claim = request("1");
        let (one, other) = tokio::join!(records.claim(&claim), records.ping());
        for error in [one.map(drop), other].map(|answer| answer.expect_err("no answer")) {
            assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
            must_not_show(&format!("{error} {error:?}"));
        }
        assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    }
}

/// A server that freezes after the login: everything it is asked then is not answered.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_server_that_freezes_after_the_login_is_not_waited_for_for_ever() {
    use tokio::io::copy_bidirectional;
    let lab = Lab::new(Kind::Postgres).await;
    lab.ready().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let url = lab.url();
    let (login, _) = url.rsplit_once('@').expect("user@host");
    let server = url.rsplit_once('@').expect("user@host").1.split('/').next().expect("a host").to_owned();
    let (freeze, frozen) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (server, mut frozen) = (server.clone(), frozen.clone());
            tokio::spawn(async move {
                let mut upstream = tokio::net::TcpStream::connect(server).await.expect("the server");
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut upstream) => {}
                    _ = frozen.changed() => {}
                }
                // Both connections stay open, and nobody reads.
                std::future::pending::<()>().await;
            });
        }
    });
    let records = Records::new(Kind::Postgres, &format!("{login}@{address}/{}", lab.name)).expect("a usable URL");
    records.ping().await.expect("it can be used");
    freeze.send(true).expect("somebody waits");
    let begun = Instant::now();
    for _ in 0..2 {
        let error = records.claim(&request("1")).await.expect_err("no answer");
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
