//! Who makes the tables, and who may not.

use std::sync::Arc;

use mqguard::idempotency::{Store, StoreError};
use tokio::task::JoinSet;

use crate::database::{Kind, Lab, Records};
use crate::{GRANTED, request};

on_each! {
    many_may_migrate_at_once,
    tables_that_are_missing_are_told_where_they_may_not_be_made,
    tables_of_a_newer_version_are_refused,
    a_dba_may_make_the_tables,
    a_migration_that_takes_long_is_waited_for,
}

mod rights {
    use super::{a_user_who_may_only_read_finds_no_store, a_user_without_rights_on_the_schema_can_use_tables_and_not_make_them};

    on_each! {
        servers:
        a_user_without_rights_on_the_schema_can_use_tables_and_not_make_them,
        a_user_who_may_only_read_finds_no_store,
    }
}

fn script(kind: Kind) -> &'static str {
    match kind {
        Kind::MariaDb => include_str!("../../mqguard-runtime/migrations/mysql/0001_records.sql"),
        Kind::Postgres => include_str!("../../mqguard-runtime/migrations/postgres/0001_records.sql"),
        Kind::Sqlite => include_str!("../../mqguard-runtime/migrations/sqlite/0001_records.sql"),
    }
}

async fn many_may_migrate_at_once(kind: Kind) {
    for round in 0..5 {
        let lab = Arc::new(Lab::new(kind).await);
        let mut migrating = JoinSet::new();
        for nth in 0..8 {
            let lab = Arc::clone(&lab);
            migrating.spawn(async move {
                let records = lab.records();
                if nth % 2 == 0 {
                    assert_eq!(records.migrate().await, Ok(()), "round {round}");
                }
                assert_eq!(records.claim(&request(&nth.to_string())).await, GRANTED, "round {round}");
            });
        }
        while let Some(done) = migrating.join_next().await {
            done.expect("no panic");
        }
    }
}

/// Says what to do.
fn is_told<T: std::fmt::Debug>(answer: &Result<T, StoreError>) {
    let Err(StoreError::Refused(why)) = answer else { panic!("{answer:?}") };
    assert!(why.contains("migrations/") && why.contains("auto_migrate"), "{why}");
}

async fn tables_that_are_missing_are_told_where_they_may_not_be_made(kind: Kind) {
    let lab = Lab::new(kind).await;
    let records = lab.records().auto_migrate(false);
    is_told(&records.ping().await);
    is_told(&records.claim(&request("1")).await);
    is_told(&records.purge().await);
    is_told(&records.state_machine().expect("it has one").ping().await);
    records.migrate().await.expect("when it is asked for");
    let records = lab.records().auto_migrate(false);
    assert_eq!(records.claim(&request("1")).await, GRANTED);
}

async fn tables_of_a_newer_version_are_refused(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    let now = if kind == Kind::Sqlite { "'now'" } else { "now()" };
    lab.session().await.must(&format!("INSERT INTO mq_schema (version, applied_at) VALUES (2, {now})")).await;
    for answer in [lab.records().ping().await, lab.records().auto_migrate(false).ping().await, lab.records().migrate().await] {
        let Err(StoreError::Refused(why)) = answer else { panic!("{answer:?}") };
        assert!(why.contains("version 2") && why.contains("newer") && why.contains("update"), "{why}");
    }
}

async fn a_dba_may_make_the_tables(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.session().await.must(script(kind)).await;
    let records = lab.records().auto_migrate(false);
    assert_eq!(records.claim(&request("1")).await, GRANTED);
    records.migrate().await.expect("there is nothing to do");
    assert_eq!(lab.records().claim(&request("2")).await, GRANTED);
}

/// Longer than anybody waits for a row.
async fn a_migration_that_takes_long_is_waited_for(kind: Kind) {
    let lab = Lab::new(kind).await;
    let mut other = lab.session().await;
    match kind {
        Kind::MariaDb => drop(other.number(&format!("SELECT GET_LOCK(CONCAT('mqguard.', MD5('{}')), 0)", lab.name)).await),
        Kind::Postgres => {
            other
                .must("SELECT pg_advisory_lock(x'006d717567617264'::bigint), pg_advisory_lock(x'006d716775617264'::bigint)")
                .await;
        }
        Kind::Sqlite => drop(other.must("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE").await),
    }
    let records = Arc::new(lab.records());
    let migrating = {
        let records = Arc::clone(&records);
        tokio::spawn(async move { records.migrate().await })
    };
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    assert!(!migrating.is_finished());
    if kind == Kind::Sqlite {
        other.must("COMMIT").await;
    }
    drop(other);
    assert_eq!(migrating.await.expect("no panic"), Ok(()));
    assert_eq!(records.claim(&request("1")).await, GRANTED);
}

async fn a_user_without_rights_on_the_schema_can_use_tables_and_not_make_them(kind: Kind) {
    let lab = Lab::new(kind).await;
    let user = lab.user().await;
    let of_user = || Records::new(kind, &lab.url_of(&user)).expect("a usable URL");
    if kind == Kind::MariaDb {
        lab.grant("SELECT, INSERT, UPDATE, DELETE", None, &user).await;
    } else {
        lab.session().await.must("REVOKE CREATE ON SCHEMA public FROM PUBLIC").await;
    }
    is_told(&of_user().ping().await);
    is_told(&of_user().migrate().await);
    lab.ready().await;
    if kind == Kind::Postgres {
        lab.grant("SELECT", Some("mq_schema"), &user).await;
        for table in ["mq_consume_record", "mq_msg_log"] {
            lab.grant("SELECT, INSERT, UPDATE, DELETE", Some(table), &user).await;
        }
    }
    for records in [of_user(), of_user().auto_migrate(false)] {
        let id = format!("{:?}", std::time::Instant::now());
        assert_eq!(records.claim(&request(&id)).await, GRANTED);
        assert_eq!(records.state_machine().expect("it has one").claim(&request(&id)).await, GRANTED);
        assert_eq!(records.purge().await, Ok(0));
        assert_eq!(records.migrate().await, Ok(()));
    }
}

/// Otherwise it would be taken for there, claim after claim refused, and each delivery given back again and again.
async fn a_user_who_may_only_read_finds_no_store(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    let user = lab.user().await;
    for table in ["mq_schema", "mq_consume_record", "mq_msg_log"] {
        lab.grant("SELECT", Some(table), &user).await;
    }
    let store = Records::new(kind, &lab.url_of(&user)).expect("a usable URL");
    let log = store.state_machine().expect("it has one");
    for answer in [store.ping().await, log.ping().await] {
        assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
    }
    for table in ["mq_consume_record", "mq_msg_log"] {
        lab.grant("INSERT, UPDATE", Some(table), &user).await;
    }
    assert_eq!((store.ping().await, log.ping().await), (Ok(()), Ok(())));
}

/// MariaDB commits each statement by itself.
#[tokio::test]
#[ignore = "needs MariaDB: cargo xtask test"]
async fn a_migration_that_died_half_way_is_finished() {
    let whole = script(Kind::MariaDb);
    let statements: Vec<&str> = whole.split_inclusive(";\n").collect();
    for done in 1..statements.len() {
        let lab = Lab::new(Kind::MariaDb).await;
        let mut session = lab.session().await;
        for statement in &statements[..done] {
            session.must(statement).await;
        }
        is_told(&lab.records().auto_migrate(false).ping().await);
        let records = lab.records();
        assert_eq!(records.claim(&request("1")).await, GRANTED, "after {done} statements");
        assert_eq!(session.number("SELECT MAX(version) FROM mq_schema").await, 1);
    }
}
