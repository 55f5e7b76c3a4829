//! What only the store on Redis can get wrong. Each test starts a server of its own.
#![cfg(feature = "redis")]
#![allow(clippy::expect_used, clippy::panic)]

#[path = "redis/batches.rs"]
mod batches;
#[path = "redis/differential.rs"]
mod differential;
#[path = "redis/faults.rs"]
mod faults;
#[path = "redis/leases.rs"]
mod leases;
#[path = "redis/login.rs"]
mod login;
#[path = "redis/records.rs"]
mod records;
#[path = "redis/server.rs"]
mod server;
#[path = "redis/stored.rs"]
mod stored;
#[path = "redis/unguarded.rs"]
mod unguarded;
#[path = "redis/warnings.rs"]
mod warnings;

use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::{ClaimRequest, Fingerprint, Hold, Identity, Owner, RedisStore, Settled, Step, Store, Turn};

const LEASE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_hours(24);

fn store(url: &str) -> Arc<RedisStore> {
    Arc::new(RedisStore::new(url).expect("a usable URL"))
}

/// A first claim of a message.
fn request(message_id: &str) -> ClaimRequest {
    let identity = Identity::new("order.process", "42", message_id);
    ClaimRequest {
        identity,
        turn: Turn::default(),
        fingerprint: Fingerprint(7),
        owner: Owner::random(),
        lease: LEASE,
        ttl: DAY,
        max_crashes: 3,
    }
}

fn hold(request: &ClaimRequest) -> Hold {
    Hold { identity: request.identity.clone(), owner: request.owner, ttl: request.ttl }
}

/// Has the server learn the script, so that nothing is sent twice.
async fn teach(store: &RedisStore) {
    store.ping().await.expect("it can be used");
    assert_eq!(store.settle(&hold(&request("the script is known")), &Step::Lettered).await, Ok(Settled::Refused));
}

fn key(request: &ClaimRequest) -> String {
    let hex: String = request.identity.digest().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("mq:dedup:{hex}")
}
