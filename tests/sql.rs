//! What only the stores in databases can get wrong. Each test has a database of its own.
#![cfg(all(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr)]

/// Makes a test of each case for each database. The runtime has one thread: what is asked before the next await travels together.
macro_rules! on_each {
    ($($case:ident,)*) => {
        on_each!(@on mariadb MariaDb [#[ignore = "needs MariaDB: cargo xtask test"]] $($case,)*);
        on_each!(@on postgres Postgres [#[ignore = "needs PostgreSQL: cargo xtask test"]] $($case,)*);
        on_each!(@on sqlite Sqlite [] $($case,)*);
    };
    (servers: $($case:ident,)*) => {
        on_each!(@on mariadb MariaDb [#[ignore = "needs MariaDB: cargo xtask test"]] $($case,)*);
        on_each!(@on postgres Postgres [#[ignore = "needs PostgreSQL: cargo xtask test"]] $($case,)*);
    };
    (@on $module:ident $kind:ident $ignored:tt $($case:ident,)*) => {
        mod $module {
            $(on_each!(@one $kind $ignored $case);)*
        }
    };
    (@one $kind:ident [$($ignored:tt)*] $case:ident) => {
        #[tokio::test]
        $($ignored)*
        async fn $case() {
            super::$case(crate::database::Kind::$kind).await;
        }
    };
}

#[path = "sql/database.rs"]
mod database;
#[path = "sql/differential.rs"]
mod differential;
#[path = "sql/faults.rs"]
mod faults;
#[path = "sql/identities.rs"]
mod identities;
#[path = "sql/locks.rs"]
mod locks;
#[path = "sql/migrations.rs"]
mod migrations;
#[path = "sql/pending.rs"]
mod pending;
#[path = "sql/processes.rs"]
mod processes;
#[path = "sql/retention.rs"]
mod retention;
#[path = "sql/rows.rs"]
mod rows;
#[path = "sql/session.rs"]
mod session;
#[path = "sql/settings.rs"]
mod settings;
#[path = "sql/urls.rs"]
mod urls;

use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{
    Claim, ClaimRequest, Fingerprint, Hold, Identity, Mode, Owner, Settled, Step, Store, StoreError, Turn,
};

const LEASE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_hours(24);
const GRANTED: Result<Claim, StoreError> = Ok(Claim::Granted { crashes: 0 });
const MODES: [Mode; 2] = [Mode::Unique, Mode::StateMachine];

/// A first claim of a message.
fn request(message_id: &str) -> ClaimRequest {
    ClaimRequest {
        identity: Identity::new("order.process", "42", message_id),
        turn: Turn::default(),
        fingerprint: Fingerprint(7),
        owner: Owner::random(),
        lease: LEASE,
        ttl: DAY,
        max_crashes: 3,
    }
}

/// Claims of the messages 000, 001, and so on.
fn requests(count: usize) -> Vec<ClaimRequest> {
    (0..count).map(|nth| request(&format!("{nth:03}"))).collect()
}

/// The same by somebody else.
fn by_another(request: &ClaimRequest) -> ClaimRequest {
    ClaimRequest { owner: Owner::random(), ..request.clone() }
}

fn hold(request: &ClaimRequest) -> Hold {
    Hold { identity: request.identity.clone(), owner: request.owner, ttl: request.ttl }
}

/// Asks for all of them at once; the answers in their order.
async fn claim_all(store: &Arc<dyn Store>, claims: &[ClaimRequest]) -> Vec<Result<Claim, StoreError>> {
    let ask = |claim: &ClaimRequest| {
        let (store, claim) = (Arc::clone(store), claim.clone());
        tokio::spawn(async move { store.claim(&claim).await })
    };
    let asked: Vec<_> = claims.iter().map(ask).collect();
    let mut answers = Vec::new();
    for asked in asked {
        answers.push(asked.await.expect("no panic"));
    }
    answers
}

/// Takes this step with all of them at once; the answers in their order.
async fn settle_all(store: &Arc<dyn Store>, claims: &[ClaimRequest], step: &Step) -> Vec<Result<Settled, StoreError>> {
    let ask = |claim: &ClaimRequest| {
        let (store, hold, step) = (Arc::clone(store), hold(claim), step.clone());
        tokio::spawn(async move { store.settle(&hold, &step).await })
    };
    let asked: Vec<_> = claims.iter().map(ask).collect();
    let mut answers = Vec::new();
    for asked in asked {
        answers.push(asked.await.expect("no panic"));
    }
    answers
}
