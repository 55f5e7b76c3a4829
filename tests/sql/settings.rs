//! Settings of the server, the database and the user do not change what is recorded.

use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{Claim, Settled, Step, Store};

use crate::database::{Kind, Lab, Records};
use crate::session::Session;
use crate::{GRANTED, LEASE, MODES, by_another, claim_all, hold, request, requests, settle_all};

on_each! {
    times_are_those_of_the_database,
}

/// Whatever the session thinks the time is: the rows are compared to the server's own clock. No statement is given a time of this host.
async fn times_are_those_of_the_database(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    for mode in MODES {
        let store = lab.store_in(mode);
        what_is_recorded_is_right(&lab, &store, mode).await;
    }
}

async fn what_is_recorded_is_right(lab: &Lab, store: &Arc<dyn Store>, mode: mqguard::idempotency::Mode) {
    let mut session = lab.session().await;
    let claim = request("times");
    assert_eq!(store.claim(&claim).await, GRANTED);
    let stored = lab.look(&mut session, mode, &claim).await;
    assert!((LEASE.as_secs().cast_signed() - 5..=60).contains(&stored.lease.expect("a lease")), "{stored:?}");
    assert!((24 * 3_600 - 5..=24 * 3_600).contains(&stored.kept), "{stored:?}");
    match store.claim(&by_another(&claim)).await {
        Ok(Claim::Busy { left }) => assert!(left > LEASE - Duration::from_secs(5) && left <= LEASE, "{left:?}"),
        other => panic!("{other:?}"),
    }
    let error = "😀".repeat(2_048);
    let step = Step::Condemn { error: error.clone(), lease: LEASE };
    assert_eq!(store.settle(&hold(&claim), &step).await, Ok(Settled::Applied));
    let stored = lab.look(&mut session, mode, &claim).await;
    assert_eq!(stored.last_error.as_ref().map(String::len), Some(error.len()));
    assert!((30 * 24 * 3_600 - 5..=30 * 24 * 3_600).contains(&stored.kept), "{stored:?}");
    // Many at once, of which some are there.
    let mut claims = requests(10);
    assert!(claim_all(store, &claims[..5]).await.iter().all(|answer| *answer == GRANTED));
    for claim in &mut claims[5..] {
        claim.lease = Duration::from_millis(1);
    }
    assert!(claim_all(store, &claims[5..]).await.iter().all(|answer| *answer == GRANTED));
    tokio::time::sleep(Duration::from_millis(20)).await;
    let later: Vec<_> = claims.iter().map(by_another).collect();
    for (nth, answer) in claim_all(store, &later).await.into_iter().enumerate() {
        match answer {
            Ok(Claim::Busy { .. }) if nth < 5 => {}
            answer => assert_eq!((nth < 5, answer), (false, Ok(Claim::Granted { crashes: 1 })), "{nth}"),
        }
    }
    let settled = settle_all(store, &claims, &Step::Complete).await;
    for (nth, answer) in settled.into_iter().enumerate() {
        assert_eq!(answer, Ok(if nth < 5 { Settled::Applied } else { Settled::Refused }), "{nth}");
    }
}

/// What a user's role sets for all of its sessions.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_role_of_postgresql_may_set_what_it_likes() {
    let lab = Lab::new(Kind::Postgres).await;
    lab.ready().await;
    let (user, mut admin) = (lab.user().await, lab.session().await);
    admin.must(&format!("GRANT ALL ON ALL TABLES IN SCHEMA public TO {user}")).await;
    for setting in [
        "TimeZone TO 'Asia/Kathmandu'",
        "default_transaction_isolation TO serializable",
        "default_transaction_deferrable TO on",
        "DateStyle TO 'German, DMY'",
        "IntervalStyle TO sql_standard",
        "bytea_output TO escape",
        "statement_timeout TO 1",
        "lock_timeout TO '1h'",
        "jit_above_cost TO 0",
        "plan_cache_mode TO force_generic_plan",
        "enable_nestloop TO off",
    ] {
        admin.must(&format!("ALTER ROLE {user} SET {setting}")).await;
    }
    let url = lab.url_of(&user);
    for mode in MODES {
        let store: Arc<dyn Store> = Arc::new(Records::new(Kind::Postgres, &url).expect("a usable URL"));
        what_is_recorded_is_right(&lab, &crate::database::in_mode(store, mode), mode).await;
    }
    idle_sessions_that_the_server_ends(&lab, &user, &mut admin).await;
}

async fn idle_sessions_that_the_server_ends(lab: &Lab, user: &str, admin: &mut Session) {
    admin.must(&format!("ALTER ROLE {user} SET idle_session_timeout TO 200")).await;
    let store = Records::new(Kind::Postgres, &lab.url_of(user)).expect("a usable URL");
    for nth in 0..3 {
        assert_eq!(store.claim(&request(&format!("idle {nth}"))).await, GRANTED);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Puts the settings of all sessions back, whatever happens.
struct Globals(Vec<(&'static str, String)>);

impl Globals {
    async fn set(session: &mut Session, settings: &[(&'static str, &str)]) -> Self {
        let mut before = Vec::new();
        for (name, value) in settings {
            let was = session.texts(1, &format!("SELECT CONVERT(@@GLOBAL.{name} USING utf8mb4)")).await.remove(0);
            before.push((*name, was.expect("a value")));
            session.must(&format!("SET GLOBAL {name} = {value}")).await;
        }
        Self(before)
    }
}

impl Drop for Globals {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.0);
        let restoring = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut session = Kind::MariaDb.admin().await;
                for (name, value) in before {
                    let value = if value.parse::<i64>().is_ok() { value } else { format!("'{value}'") };
                    session.must(&format!("SET GLOBAL {name} = {value}")).await;
                }
            });
        });
        restoring.join().expect("they are restored");
    }
}

#[tokio::test]
#[ignore = "needs MariaDB: cargo xtask test"]
async fn a_mariadb_may_set_what_it_likes() {
    let lab = Lab::new(Kind::MariaDb).await;
    lab.ready().await;
    let mut admin = lab.session().await;
    for (isolation, sql_mode) in [
        ("'SERIALIZABLE'", "''"),
        ("'REPEATABLE-READ'", "'ANSI,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES,TIME_ROUND_FRACTIONAL'"),
        ("'READ-UNCOMMITTED'", "'ORACLE,EMPTY_STRING_IS_NULL'"),
    ] {
        let globals = Globals::set(
            &mut admin,
            &[
                ("time_zone", "'+09:30'"),
                ("sql_mode", sql_mode),
                ("autocommit", "0"),
                ("tx_isolation", isolation),
                ("innodb_lock_wait_timeout", "77"),
                ("character_set_server", "'latin1'"),
                ("collation_server", "'latin1_general_ci'"),
            ],
        )
        .await;
        for mode in MODES {
            let store = lab.store_in(mode);
            what_is_recorded_is_right(&lab, &store, mode).await;
        }
        // All of it is committed: another session sees it.
        assert!(admin.number("SELECT COUNT(*) FROM mq_consume_record").await > 10);
        admin.must("DELETE FROM mq_consume_record").await;
        admin.must("DELETE FROM mq_msg_log").await;
        drop(globals);
    }
}

/// Options of the URL that the client takes for itself.
#[tokio::test]
#[ignore = "needs MariaDB: cargo xtask test"]
async fn a_url_may_ask_for_another_character_set() {
    let lab = Lab::new(Kind::MariaDb).await;
    for query in
        ["charset=latin1", "charset=utf8mb4&collation=utf8mb4_unicode_ci", "timezone=%2B03:00", "statement-cache-capacity=1"]
    {
        let store: Arc<dyn Store> =
            Arc::new(Records::new(Kind::MariaDb, &format!("{}?{query}", lab.url())).expect("a usable URL"));
        what_is_recorded_is_right(&lab, &store, mqguard::idempotency::Mode::Unique).await;
        lab.session().await.must("DELETE FROM mq_consume_record").await;
    }
}
