//! Leases are told from the expiry.

use std::time::Duration;

use mqguard::idempotency::{Claim, ClaimRequest, Owner, Settled, Step, Store};
use tokio::time::Instant;

use crate::server::Server;
use crate::stored::look;
use crate::{LEASE, hold, key, request, store};

fn by_another(claim: &ClaimRequest) -> ClaimRequest {
    ClaimRequest { owner: Owner::random(), ..claim.clone() }
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn no_lease_lapses_early_and_none_much_later() {
    let server = Server::start();
    let store = store(&server.url());
    let lease = Duration::from_millis(4);
    let mut late = Vec::new();
    for id in 0..100 {
        // The shortest retention: the record itself must not go early either.
        let claim = ClaimRequest { lease, ttl: Duration::ZERO, ..request(&id.to_string()) };
        let before = Instant::now();
        assert_eq!(store.claim(&claim).await, Ok(Claim::Granted { crashes: 0 }));
        let other = by_another(&claim);
        while let Ok(Claim::Busy { left }) = store.claim(&other).await {
            assert!(left > Duration::ZERO && left <= lease, "{left:?}");
        }
        assert!(before.elapsed() >= lease, "lapsed after {:?}", before.elapsed());
        late.push(before.elapsed() - lease);
    }
    late.sort();
    assert!(late[0] < Duration::from_millis(20), "{late:?}");
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn a_lease_whose_expiry_was_changed_begins_anew_and_the_record_expires_again() {
    let server = Server::start();
    let (store, mut client) = (store(&server.url()), server.client());
    for (id, change) in [("1", "PERSIST {key}"), ("2", "EXPIRE {key} 999999999")] {
        let claim = request(id);
        assert_eq!(store.claim(&claim).await, Ok(Claim::Granted { crashes: 0 }));
        client.run(&change.replace("{key}", &key(&claim)));
        let answer = store.claim(&by_another(&claim)).await;
        assert!(matches!(answer, Ok(Claim::Busy { left }) if left <= LEASE && left > LEASE / 2), "{answer:?}");
        let stored = look(&mut client, &claim);
        assert!(stored.pttl > 0 && stored.pttl <= stored.kept, "{stored:?}");
        assert_eq!(store.settle(&hold(&claim), &Step::Complete).await, Ok(Settled::Applied));
    }
}
