//! Sessions that end, and servers that write nothing.

use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{Settled, Step, StoreError};

use crate::database::{Kind, Lab};
use crate::session::Session;
use crate::{GRANTED, claim_all, request, requests, settle_all};

on_each! {
    servers:
    a_session_that_ended_while_idle_is_replaced_unnoticed,
    a_session_that_is_ended_at_work_is_replaced_unnoticed,
    a_server_that_only_reads_is_unavailable_until_it_writes,
    a_missing_table_is_told_and_comes_back,
    conflicts_are_nobody_elses_business,
}

/// Ends the sessions with this database but its own; how many.
async fn end_others(lab: &Lab, admin: &mut Session) -> usize {
    let sessions = match lab.kind {
        Kind::MariaDb => format!(
            "SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE db = '{}' AND id <> CONNECTION_ID()",
            lab.name
        ),
        _ => format!("SELECT pid::bigint FROM pg_stat_activity WHERE datname = '{}' AND application_name = 'mqguard'", lab.name),
    };
    let ids = admin.numbers(&sessions).await;
    for id in &ids {
        let end = match lab.kind {
            Kind::MariaDb => format!("KILL {id}"),
            _ => format!("SELECT pg_terminate_backend({id})"),
        };
        admin.must(&end).await;
    }
    ids.len()
}

async fn a_session_that_ended_while_idle_is_replaced_unnoticed(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, mut admin) = (lab.ready().await, kind.admin().await);
    for round in 0..5 {
        let claims: Vec<_> = (0..20).map(|nth| request(&format!("{round}.{nth}"))).collect();
        assert_eq!(end_others(&lab, &mut admin).await, 1);
        tokio::time::sleep(Duration::from_millis(20 * round)).await;
        assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED), "round {round}");
    }
}

async fn a_session_that_is_ended_at_work_is_replaced_unnoticed(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, mut admin, mut other) = (lab.ready().await, kind.admin().await, lab.session().await);
    let claims = requests(20);
    assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED));
    other.must("BEGIN").await;
    other.must("UPDATE mq_consume_record SET created_at = created_at").await;
    let settling = {
        let (store, claims) = (Arc::clone(&store), claims.clone());
        tokio::spawn(async move { settle_all(&store, &claims, &Step::Complete).await })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    // Also the one that has locked the rows.
    assert_eq!(end_others(&lab, &mut admin).await, if kind == Kind::MariaDb { 2 } else { 1 });
    if kind == Kind::Postgres {
        other.must("ROLLBACK").await;
    }
    for (nth, answer) in settling.await.expect("no panic").into_iter().enumerate() {
        assert_eq!(answer, Ok(Settled::Applied), "{nth}");
    }
}

async fn a_server_that_only_reads_is_unavailable_until_it_writes(kind: Kind) {
    let lab = Lab::new(kind).await;
    drop(lab.ready().await);
    let (user, mut admin) = (lab.user().await, kind.admin().await);
    let only_reads = |yes: bool| match kind {
        Kind::MariaDb => format!("SET GLOBAL read_only = {}", u8::from(yes)),
        _ => format!("ALTER ROLE {user} SET default_transaction_read_only = {yes}"),
    };
    for table in ["mq_schema", "mq_consume_record"] {
        lab.grant("SELECT, INSERT, UPDATE, DELETE", Some(table), &user).await;
    }
    let store: Arc<dyn mqguard::idempotency::Store> =
        Arc::new(crate::database::Records::new(kind, &lab.url_of(&user)).expect("a usable URL"));
    let claims = requests(10);
    assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED));
    admin.must(&only_reads(true)).await;
    if kind == Kind::Postgres {
        // For sessions to come.
        end_others(&lab, &mut admin).await;
    }
    let answers = settle_all(&store, &claims, &Step::Complete).await;
    admin.must(&only_reads(false)).await;
    let is_unavailable = |answer: &Result<Settled, StoreError>| matches!(answer, Err(StoreError::Unavailable(_)));
    assert!(answers.iter().all(is_unavailable), "{answers:?}");
    let answers = settle_all(&store, &claims, &Step::Complete).await;
    assert!(answers.iter().all(|answer| *answer == Ok(Settled::Applied)), "{answers:?}");
}

async fn a_missing_table_is_told_and_comes_back(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, mut dba) = (lab.ready().await, lab.session().await);
    let claims = requests(3);
    dba.must("ALTER TABLE mq_consume_record RENAME TO elsewhere").await;
    for answer in claim_all(&store, &claims).await {
        assert!(matches!(&answer, Err(StoreError::Refused(why)) if why.contains("mq_consume_record")), "{answer:?}");
    }
    dba.must("ALTER TABLE elsewhere RENAME TO mq_consume_record").await;
    assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED));
}

/// Each statement meets two conflicts before it is let through, as a server under load may answer whatever the isolation.
async fn conflicts_are_nobody_elses_business(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, mut dba) = (lab.ready().await, lab.session().await);
    for event in ["INSERT", "UPDATE"] {
        let conflict = match kind {
            Kind::MariaDb => format!(
                "CREATE TRIGGER t_{event} BEFORE {event} ON mq_consume_record FOR EACH ROW BEGIN
                    SET @met_{event} = COALESCE(@met_{event}, 0) + 1;
                    IF @met_{event} % 3 <> 0 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END IF;
                 END"
            ),
            _ => format!(
                "CREATE SEQUENCE s_{event};
                 CREATE FUNCTION f_{event}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    IF nextval('s_{event}') % 3 <> 0 THEN RAISE serialization_failure; END IF;
                    RETURN NULL;
                 END $$;
                 CREATE TRIGGER t_{event} AFTER {event} ON mq_consume_record FOR EACH STATEMENT EXECUTE FUNCTION f_{event}()"
            ),
        };
        dba.must(&conflict).await;
    }
    // MariaDB runs a trigger for each row.
    let claims = requests(if kind == Kind::MariaDb { 1 } else { 20 });
    for step in [Step::Renew { lease: crate::LEASE }, Step::Complete] {
        assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED));
        let settled = settle_all(&store, &claims, &step).await;
        assert!(settled.iter().all(|answer| *answer == Ok(Settled::Applied)), "{settled:?}");
    }
    let stored = lab.look(&mut dba, mqguard::idempotency::Mode::Unique, &claims[0]).await;
    assert_eq!((stored.status.as_str(), stored.crashes), ("success", 0));
}
