//! Receiving: in order, as much as asked for, once.

use std::collections::BTreeSet;
use std::time::Duration;

use mqguard::broker::{BrokerError, Settlement};
use tokio::time::{sleep, timeout};

use crate::harness::{BOTH, Bench, body, within};

pub async fn deliveries_come_in_order(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        for n in 0..20 {
            bench.send(&queue, &n.to_string()).await;
        }
        let mut consumer = bench.consume(&queue, 5).await;
        for n in 0..20 {
            assert_eq!(consumer.accept().await, n.to_string());
        }
        consumer.nothing().await;
    }
}

pub async fn a_message_wakes_who_waits_for_it(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        let mut consumer = bench.consume(&queue, 1).await;
        consumer.nothing().await;
        let (received, ()) = tokio::join!(consumer.accept(), bench.send(&queue, "a"));
        assert_eq!(received, "a");
    }
}

pub async fn no_more_than_the_prefetch_are_out(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        for n in 0..6 {
            bench.send(&queue, &n.to_string()).await;
        }
        let mut consumer = bench.consume(&queue, 3).await;
        let mut out = consumer.take(3).await;
        consumer.nothing().await;
        // Out of order: what is settled makes room, whatever came before it.
        out.pop().unwrap().receipt.settle(Settlement::Ack);
        let fourth = consumer.next().await;
        assert_eq!(body(&fourth), "3");
        consumer.nothing().await;
        out.pop().unwrap().receipt.settle(Settlement::Ack);
        fourth.receipt.settle(Settlement::Ack);
        assert_eq!([body(&consumer.next().await), body(&consumer.next().await)], ["4", "5"]);
        consumer.close().await;
    }
}

pub async fn one_slow_delivery_holds_up_nothing(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        for n in 0..50 {
            bench.send(&queue, &n.to_string()).await;
        }
        let mut consumer = bench.consume(&queue, 2).await;
        let slow = consumer.next().await;
        for n in 1..50 {
            assert_eq!(consumer.accept().await, n.to_string());
        }
        slow.receipt.settle(Settlement::Ack);
        consumer.close().await;
        assert!(bench.drain(&queue).await.is_empty());
    }
}

pub async fn two_subscriptions_share_a_queue(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        let [mut first, mut second] = [bench.consume(&queue, 5).await, bench.consume(&queue, 5).await];
        for n in 0..40 {
            bench.send(&queue, &n.to_string()).await;
        }
        let mut seen = [const { Vec::new() }; 2];
        for _ in 0..40 {
            tokio::select! {
                body = first.accept() => seen[0].push(body),
                body = second.accept() => seen[1].push(body),
            }
        }
        first.nothing().await;
        second.nothing().await;
        assert!(seen.iter().all(|seen| seen.len() >= 5), "{seen:?}");
        let all: BTreeSet<_> = seen.concat().into_iter().collect();
        assert_eq!(all.len(), 40);
    }
}

/// Waiting for a delivery is given up all the time, as when there is something else to do.
pub async fn giving_up_waiting_loses_nothing(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        let mut consumer = bench.consume(&queue, 4).await;
        let publishing = async {
            for n in 0..50 {
                bench.send(&queue, &n.to_string()).await;
            }
        };
        let receiving = async {
            let mut seen = Vec::new();
            while seen.len() < 50 {
                if let Ok(delivery) = timeout(Duration::from_micros(200), consumer.next()).await {
                    seen.push(body(&delivery));
                    delivery.receipt.settle(Settlement::Ack);
                }
            }
            seen
        };
        let (seen, ()) = tokio::join!(receiving, publishing);
        assert_eq!(seen, (0..50).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

/// What is delivered does not, until it is handed back.
pub async fn what_is_ready_makes_a_queue_not_empty(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        assert_eq!(bench.broker.is_empty(&queue).await, Ok(true), "{queue_type:?}: nothing was there yet");
        bench.send(&queue, "a").await;
        assert_eq!(bench.broker.is_empty(&queue).await, Ok(false), "{queue_type:?}: the broker has confirmed it");
        let mut consumer = bench.consume(&queue, 1).await;
        let delivery = consumer.next().await;
        assert_eq!(bench.broker.is_empty(&queue).await, Ok(true), "{queue_type:?}: it is out");
        consumer.close().await;
        drop(delivery);
        // The broker has closed the channel before it has handed back.
        within(async {
            while bench.broker.is_empty(&queue).await == Ok(true) {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        assert_eq!(bench.drain(&queue).await, ["a"]);
        assert_eq!(bench.broker.is_empty(&queue).await, Ok(true), "{queue_type:?}: it is gone");
    }
    let missing = bench.name("missing");
    assert_eq!(bench.broker.is_empty(&missing).await, Err(BrokerError::Missing { what: "queue", name: missing }));
}
