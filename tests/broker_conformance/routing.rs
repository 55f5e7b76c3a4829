//! Which queues a message gets to.

use mqguard::broker::{Address, ExchangeKind, PublishError};

use crate::harness::{BOTH, Bench, message, within};

/// Publishes one message for each key and tells which queue got which.
async fn routed<const N: usize>(bench: &Bench, exchange: &str, queues: [&str; N], keys: &[&str]) -> [Vec<String>; N] {
    for key in keys {
        let address = Address::exchange(exchange, *key);
        match within(bench.broker.publish(&address, &message(key))).await {
            Ok(()) | Err(PublishError::Unroutable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let mut got = [const { Vec::new() }; N];
    for (got, queue) in got.iter_mut().zip(queues) {
        *got = bench.drain(queue).await;
    }
    got
}

pub async fn the_default_exchange_routes_by_queue_name(bench: &Bench) {
    let [first, second] = [bench.queue(BOTH[0]).await, bench.queue(BOTH[1]).await];
    bench.send(&second, "b").await;
    bench.send(&first, "a").await;
    let mut consumer = bench.consume(&first, 10).await;
    let delivery = consumer.next().await;
    assert_eq!((delivery.exchange.as_str(), delivery.routing_key.as_str()), ("", first.as_str()));
    assert_eq!(bench.drain(&second).await, ["b"]);
}

pub async fn direct_routes_by_the_whole_key(bench: &Bench) {
    let [a, b] = [bench.queue(BOTH[1]).await, bench.queue(BOTH[1]).await];
    let exchange = bench.exchange(ExchangeKind::Direct, &[(&a, "one"), (&b, "two"), (&b, "one"), (&a, "#")]).await;
    let got = routed(bench, &exchange, [&a, &b], &["one", "two", "one.two", "#", ""]).await;
    assert_eq!(got[0], ["one", "#"]);
    assert_eq!(got[1], ["one", "two"]);
}

pub async fn fanout_routes_to_all(bench: &Bench) {
    let [a, b] = [bench.queue(BOTH[1]).await, bench.queue(BOTH[0]).await];
    let exchange = bench.exchange(ExchangeKind::Fanout, &[(&a, ""), (&b, "ignored")]).await;
    let got = routed(bench, &exchange, [&a, &b], &["x", "y"]).await;
    assert_eq!(got[0], ["x", "y"]);
    assert_eq!(got[1], ["x", "y"]);
}

pub async fn topic_routes_by_pattern(bench: &Bench) {
    let [star, hash, middle, all] =
        [bench.queue(BOTH[1]).await, bench.queue(BOTH[1]).await, bench.queue(BOTH[1]).await, bench.queue(BOTH[1]).await];
    let bindings = [
        (star.as_str(), "order.*"),
        (star.as_str(), "order.new"),
        (hash.as_str(), "order.#"),
        (middle.as_str(), "*.new.#.eu"),
        (all.as_str(), "#"),
    ];
    let exchange = bench.exchange(ExchangeKind::Topic, &bindings).await;
    let keys = ["order", "order.new", "order.new.eu", "order.new.big.fat.eu", "order.", "invoice.new.eu", "orders.new", ""];
    let got = routed(bench, &exchange, [&star, &hash, &middle, &all], &keys).await;
    // Once, though two patterns match; and an empty word is a word.
    assert_eq!(got[0], ["order.new", "order."]);
    assert_eq!(got[1], ["order", "order.new", "order.new.eu", "order.new.big.fat.eu", "order."]);
    assert_eq!(got[2], ["order.new.eu", "order.new.big.fat.eu", "invoice.new.eu"]);
    assert_eq!(got[3], keys);
}

pub async fn a_delivery_tells_exchange_and_key(bench: &Bench) {
    let queue = bench.queue(BOTH[0]).await;
    let exchange = bench.exchange(ExchangeKind::Topic, &[(&queue, "#")]).await;
    bench.publish(&Address::exchange(&exchange, "some.key"), &message("a")).await;
    let delivery = bench.consume(&queue, 1).await.next().await;
    assert_eq!((delivery.exchange, delivery.routing_key), (exchange, "some.key".into()));
    assert!(!delivery.redelivered);
}
