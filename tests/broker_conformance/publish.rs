//! Publishing: what is confirmed, what is not, and that a refusal leaves everything usable.

use std::sync::Arc;

use mqguard::broker::{Address, ExchangeKind, PublishError};
use tokio::task::JoinSet;

use crate::harness::{BOTH, Bench, message, within};

pub async fn a_missing_queue_is_unroutable(bench: &Bench) {
    let address = Address::queue(bench.name("missing"));
    let result = within(bench.broker.publish(&address, &message("a"))).await;
    assert_eq!(result, Err(PublishError::Unroutable(address)));
    still_usable(bench).await;
}

pub async fn a_missing_exchange_is_unroutable(bench: &Bench) {
    let address = Address::exchange(bench.name("missing"), "key");
    for _ in 0..3 {
        let result = within(bench.broker.publish(&address, &message("a"))).await;
        assert_eq!(result, Err(PublishError::Unroutable(address.clone())));
    }
    still_usable(bench).await;
}

pub async fn an_exchange_that_routes_nowhere_is_unroutable(bench: &Bench) {
    let queue = bench.queue(BOTH[0]).await;
    let exchange = bench.exchange(ExchangeKind::Direct, &[(&queue, "bound")]).await;
    let address = Address::exchange(&exchange, "unbound");
    let result = within(bench.broker.publish(&address, &message("a"))).await;
    assert_eq!(result, Err(PublishError::Unroutable(address)));
    bench.publish(&Address::exchange(exchange, "bound"), &message("b")).await;
    assert_eq!(bench.drain(&queue).await, ["b"]);
}

pub async fn many_at_once_are_all_confirmed(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        let mut publishes = JoinSet::new();
        for n in 0..200 {
            let (broker, address) = (Arc::clone(&bench.broker), Address::queue(&queue));
            publishes.spawn(async move { broker.publish(&address, &message(&n.to_string())).await });
        }
        let results = within(publishes.join_all()).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        let mut bodies = bench.drain(&queue).await;
        bodies.sort_by_key(|body| body.parse::<u32>().unwrap());
        assert_eq!(bodies, (0..200).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

/// Each result belongs to its own publish, whatever others are under way.
pub async fn results_are_not_mixed_up(bench: &Bench) {
    let (queue, missing) = (bench.queue(BOTH[0]).await, bench.name("missing"));
    let mut publishes = JoinSet::new();
    for n in 0..100 {
        let there = n % 3 != 0;
        let (broker, address) = (Arc::clone(&bench.broker), Address::queue(if there { &queue } else { &missing }));
        publishes.spawn(async move { (there, broker.publish(&address, &message(&n.to_string())).await.is_ok()) });
    }
    for (there, confirmed) in within(publishes.join_all()).await {
        assert_eq!(there, confirmed);
    }
    assert_eq!(bench.drain(&queue).await.len(), 66);
}

async fn still_usable(bench: &Bench) {
    let queue = bench.queue(BOTH[0]).await;
    bench.send(&queue, "after").await;
    assert_eq!(bench.drain(&queue).await, ["after"]);
}
