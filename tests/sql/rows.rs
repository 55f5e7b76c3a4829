//! What a DBA has done to rows and tables.

use std::sync::Arc;

use mqguard::idempotency::{Claim, Settled, Step, Store, StoreError, Turn};

use crate::database::{Kind, Lab};
use crate::{GRANTED, by_another, claim_all, hold, requests, settle_all};

on_each! {
    a_row_that_is_no_record_fails_alone,
    a_row_that_a_constraint_refuses_fails_alone,
    a_row_that_a_trigger_refuses_fails_alone,
    a_row_that_another_unique_index_refuses_fails_alone,
    a_table_that_was_altered_under_the_session_can_be_used,
}

fn is_unusable(answer: Result<(), StoreError>, id: &str) -> bool {
    matches!(&answer, Err(StoreError::Unusable { key, .. }) if key.ends_with(&format!("/{id}")))
}

/// Claims and steps of a batch of which only the one with this number is refused.
async fn only_one_fails(store: &Arc<dyn Store>, count: usize, refused: usize) {
    let claims = requests(count);
    for (nth, answer) in claim_all(store, &claims).await.into_iter().enumerate() {
        if nth == refused {
            assert!(is_unusable(answer.clone().map(drop), &format!("{nth:03}")), "{answer:?}");
        } else {
            assert_eq!(answer, GRANTED, "{nth}");
        }
    }
}

async fn a_row_that_is_no_record_fails_alone(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, mut dba) = (lab.ready().await, lab.session().await);
    let claims = requests(20);
    assert!(claim_all(&store, &claims).await.iter().all(|answer| *answer == GRANTED));
    match kind {
        Kind::MariaDb => dba.must("ALTER TABLE mq_consume_record DROP CONSTRAINT mq_consume_record_status").await,
        Kind::Postgres => dba.must("ALTER TABLE mq_consume_record DROP CONSTRAINT mq_consume_record_status_check").await,
        Kind::Sqlite => dba.must("PRAGMA ignore_check_constraints = ON").await,
    };
    dba.must("UPDATE mq_consume_record SET status = 'odd' WHERE msg_id = '003'").await;
    dba.must("UPDATE mq_consume_record SET generation = 5000000000 WHERE msg_id = '004'").await;
    dba.must("UPDATE mq_consume_record SET owner = 'nobody' WHERE msg_id = '005'").await;
    let later: Vec<_> = claims.iter().map(by_another).collect();
    for (nth, answer) in claim_all(&store, &later).await.into_iter().enumerate() {
        if (3..=5).contains(&nth) {
            assert!(is_unusable(answer.clone().map(drop), &format!("{nth:03}")), "{answer:?}");
        } else {
            assert!(matches!(answer, Ok(Claim::Busy { .. })), "{nth}: {answer:?}");
        }
    }
    for (nth, answer) in settle_all(&store, &claims, &Step::Complete).await.into_iter().enumerate() {
        match nth {
            3 | 5 => assert!(is_unusable(answer.clone().map(drop), &format!("{nth:03}")), "{answer:?}"),
            // Nobody needs to look at what the turn was.
            4 => assert!(answer.is_ok() || is_unusable(answer.clone().map(drop), "004"), "{answer:?}"),
            _ => assert_eq!(answer, Ok(Settled::Applied), "{nth}"),
        }
    }
}

async fn a_row_that_a_constraint_refuses_fails_alone(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, mut dba) = (lab.ready().await, lab.session().await);
    match kind {
        Kind::Sqlite => {
            dba.must(
                "CREATE TRIGGER t BEFORE INSERT ON mq_consume_record WHEN new.msg_id = '005' BEGIN SELECT RAISE(ABORT, 'no'); END",
            )
            .await
        }
        _ => dba.must("ALTER TABLE mq_consume_record ADD CONSTRAINT five CHECK (msg_id <> '005')").await,
    };
    only_one_fails(&store, 20, 5).await;
}

/// As triggers tell it, with a code of their own too.
async fn a_row_that_a_trigger_refuses_fails_alone(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, mut dba) = (lab.ready().await, lab.session().await);
    let refusals: &[&str] = match kind {
        Kind::MariaDb => {
            &["SIGNAL SQLSTATE '45000'", "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31234", "SIGNAL SQLSTATE 'MQ001'"]
        }
        Kind::Postgres => &["RAISE EXCEPTION 'no'", "RAISE EXCEPTION 'no' USING ERRCODE = 'MQ001'", "RAISE unique_violation"],
        Kind::Sqlite => &["RAISE(ABORT, 'no')", "RAISE(FAIL, 'no')", "RAISE(ROLLBACK, 'no')"],
    };
    for (nth, refusal) in refusals.iter().enumerate() {
        dba.must("DELETE FROM mq_consume_record").await;
        match kind {
            Kind::MariaDb => {
                let sql = format!(
                    "CREATE OR REPLACE TRIGGER t BEFORE INSERT ON mq_consume_record FOR EACH ROW IF new.msg_id = '005' THEN {refusal}; END IF"
                );
                dba.must(&sql).await;
            }
            Kind::Postgres => {
                let sql = format!(
                    "CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS
                     $$ BEGIN IF new.msg_id = '005' THEN {refusal}; END IF; RETURN new; END $$;
                     CREATE OR REPLACE TRIGGER t BEFORE INSERT ON mq_consume_record FOR EACH ROW EXECUTE FUNCTION f()"
                );
                dba.must(&sql).await;
            }
            Kind::Sqlite => {
                let sql = format!(
                    "DROP TRIGGER IF EXISTS t;
                     CREATE TRIGGER t BEFORE INSERT ON mq_consume_record WHEN new.msg_id = '005' BEGIN SELECT {refusal}; END"
                );
                dba.must(&sql).await;
            }
        }
        only_one_fails(&store, 20, 5).await;
        // A session that was left in a state of its own would show it now.
        let again = requests(30).split_off(20);
        assert!(claim_all(&store, &again).await.iter().all(|answer| *answer == GRANTED), "refusal {nth}");
    }
}

async fn a_row_that_another_unique_index_refuses_fails_alone(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, mut dba) = (lab.ready().await, lab.session().await);
    dba.must("CREATE UNIQUE INDEX odd ON mq_consume_record (consumer, body)").await;
    let mut claims = requests(20);
    for (nth, claim) in (1..).zip(&mut claims) {
        claim.fingerprint.0 = nth;
    }
    claims[19].fingerprint.0 = 5;
    for (nth, answer) in claim_all(&store, &claims).await.into_iter().enumerate() {
        match nth {
            // Whichever comes first.
            4 | 19 => assert!(answer == GRANTED || is_unusable(answer.clone().map(drop), &format!("{nth:03}")), "{answer:?}"),
            _ => assert_eq!(answer, GRANTED, "{nth}"),
        }
    }
    let granted = claim_all(&store, &claims).await.into_iter().filter(|answer| *answer == GRANTED).count();
    assert_eq!(granted, 19);
}

/// Statements that are prepared do not fit any more then.
async fn a_table_that_was_altered_under_the_session_can_be_used(kind: Kind) {
    let lab = Lab::new(kind).await;
    let (store, mut dba) = (lab.ready().await, lab.session().await);
    let mut claims = requests(2);
    assert_eq!(claim_all(&store, &claims[..1]).await, [GRANTED]);
    claims[0].turn = Turn { generation: 0, step: 1 };
    let alterations: &[&str] = match kind {
        Kind::MariaDb => &[
            "ALTER TABLE mq_consume_record ADD COLUMN note TEXT NULL FIRST",
            "ALTER TABLE mq_consume_record MODIFY step INT NOT NULL DEFAULT 0",
        ],
        Kind::Postgres => {
            &["ALTER TABLE mq_consume_record ADD COLUMN note text", "ALTER TABLE mq_consume_record ALTER owner TYPE varchar(40)"]
        }
        Kind::Sqlite => &["ALTER TABLE mq_consume_record ADD COLUMN note TEXT"],
    };
    for alteration in alterations {
        let later = by_another(&claims[0]);
        assert!(matches!(store.claim(&later).await, Ok(Claim::Busy { .. })));
        dba.must(alteration).await;
        let answer = store.claim(&later).await;
        assert!(matches!(answer, Ok(Claim::Busy { .. })), "{alteration}: {answer:?}");
    }
    assert_eq!(store.settle(&hold(&claims[0]), &Step::Complete).await, Ok(Settled::Applied));
}
