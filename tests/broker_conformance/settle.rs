//! Settling: what is acked is gone, all else comes again.

use std::collections::BTreeSet;

use mqguard::broker::{Address, QueueType, Settlement};
use tokio::time::timeout;

use crate::harness::{BOTH, Bench, PATIENCE, body, dead_letters_to, death, message};

pub async fn what_is_acked_is_gone(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        bench.send(&queue, "a").await;
        let mut consumer = bench.consume(&queue, 1).await;
        let delivery = consumer.next().await;
        assert!(!delivery.redelivered);
        delivery.receipt.settle(Settlement::Ack);
        consumer.close().await;
        assert!(bench.drain(&queue).await.is_empty());
    }
}

/// As often as it is handed back.
pub async fn what_is_handed_back_comes_again(bench: &Bench) {
    for queue_type in BOTH {
        for settlement in [Settlement::Reject, Settlement::Return] {
            let queue = bench.queue(queue_type).await;
            bench.send(&queue, "a").await;
            let mut consumer = bench.consume(&queue, 1).await;
            for round in 0..3 {
                let delivery = consumer.next().await;
                assert_eq!((body(&delivery).as_str(), delivery.redelivered), ("a", round > 0), "{queue_type:?} {settlement:?}");
                delivery.receipt.settle(settlement);
            }
            assert_eq!(consumer.accept().await, "a");
            consumer.nothing().await;
        }
    }
}

/// A quorum queue puts it at the end, or at the front, as its version and arguments are.
pub async fn what_is_handed_back_keeps_its_place_in_a_classic_queue(bench: &Bench) {
    let queue = bench.queue(QueueType::Classic).await;
    for text in ["a", "b", "c"] {
        bench.send(&queue, text).await;
    }
    let mut consumer = bench.consume(&queue, 1).await;
    for settlement in [Settlement::Reject, Settlement::Return] {
        let delivery = consumer.next().await;
        assert_eq!(body(&delivery), "a");
        delivery.receipt.settle(settlement);
    }
    assert_eq!([consumer.accept().await, consumer.accept().await, consumer.accept().await], ["a", "b", "c"]);
}

pub async fn a_receipt_that_is_dropped_hands_back(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        bench.send(&queue, "a").await;
        let mut consumer = bench.consume(&queue, 1).await;
        drop(consumer.next().await);
        let delivery = consumer.next().await;
        assert_eq!((body(&delivery).as_str(), delivery.redelivered), ("a", true));
    }
}

pub async fn closing_hands_back_what_is_out(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        for n in 0..6 {
            bench.send(&queue, &n.to_string()).await;
        }
        let mut consumer = bench.consume(&queue, 4).await;
        let out = consumer.take(4).await;
        consumer.close().await;
        let mut next = bench.consume(&queue, 10).await;
        let again = next.take(6).await;
        let mut again: Vec<_> = again.iter().map(|delivery| (body(delivery), delivery.redelivered)).collect();
        again.sort();
        let expected: Vec<_> = (0..6).map(|n| (n.to_string(), n < 4)).collect();
        assert_eq!(again, expected, "{queue_type:?}");
        drop(out);
    }
}

pub async fn dropping_the_subscription_hands_back_what_is_out(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        bench.send(&queue, "a").await;
        bench.send(&queue, "b").await;
        let mut consumer = bench.consume(&queue, 2).await;
        let mut out = consumer.take(2).await;
        out.remove(0).receipt.settle(Settlement::Ack);
        drop(consumer);
        let mut next = bench.consume(&queue, 10).await;
        let again = next.next().await;
        assert_eq!((body(&again).as_str(), again.redelivered), ("b", true), "{queue_type:?}");
        next.nothing().await;
    }
}

/// The last acks before a close are not lost.
pub async fn closing_waits_for_the_acks(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        for n in 0..60 {
            bench.send(&queue, &n.to_string()).await;
        }
        let mut seen = BTreeSet::new();
        for _ in 0..6 {
            let mut consumer = bench.consume(&queue, 20).await;
            for delivery in consumer.take(10).await {
                assert!(seen.insert(body(&delivery)), "acked, and came again");
                delivery.receipt.settle(Settlement::Ack);
            }
            consumer.close().await;
        }
        assert!(bench.drain(&queue).await.is_empty());
    }
}

pub async fn a_settlement_after_the_close_has_no_effect(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        bench.send(&queue, "a").await;
        let mut consumer = bench.consume(&queue, 1).await;
        let delivery = consumer.next().await;
        assert!(delivery.receipt.is_open());
        consumer.close().await;
        timeout(PATIENCE, delivery.receipt.closed()).await.unwrap();
        assert!(!delivery.receipt.is_open());
        let mut next = bench.consume(&queue, 1).await;
        let again = next.next().await;
        delivery.receipt.settle(Settlement::Ack);
        again.receipt.settle(Settlement::Return);
        assert_eq!(next.accept().await, "a", "{queue_type:?}");
    }
}

pub async fn waiting_for_the_end_of_a_receipt_ends_with_the_subscription(bench: &Bench) {
    let queue = bench.queue(BOTH[0]).await;
    bench.send(&queue, "a").await;
    let mut consumer = bench.consume(&queue, 1).await;
    let delivery = consumer.next().await;
    let (ended, ()) = tokio::join!(timeout(PATIENCE, delivery.receipt.closed()), consumer.close());
    ended.unwrap();
}

pub async fn cancelling_hands_back_what_was_not_taken(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        for n in 0..5 {
            bench.send(&queue, &n.to_string()).await;
        }
        let mut consumer = bench.consume(&queue, 4).await;
        let mut out = consumer.take(2).await;
        consumer.cancel().await;
        let mut next = bench.consume(&queue, 10).await;
        let mut back = [next.accept().await, next.accept().await, next.accept().await];
        back.sort();
        assert_eq!(back, ["2", "3", "4"], "{queue_type:?}");
        // The two are still out; settling them counts.
        next.nothing().await;
        let second = out.pop().unwrap();
        assert!(second.receipt.is_open());
        second.receipt.settle(Settlement::Ack);
        out.pop().unwrap().receipt.settle(Settlement::Return);
        assert_eq!(next.accept().await, "0");
        next.nothing().await;
        // Once more is no mistake.
        consumer.cancel().await;
        consumer.close().await;
    }
}

pub async fn nothing_comes_after_cancelling(bench: &Bench) {
    let queue = bench.queue(BOTH[0]).await;
    let mut consumer = bench.consume(&queue, 1).await;
    bench.send(&queue, "a").await;
    consumer.cancel().await;
    consumer.ended().await;
    consumer.ended().await;
    consumer.close().await;
    assert_eq!(bench.drain(&queue).await, ["a"]);
}

/// A limit of 2 lets 3 deliveries happen.
pub async fn the_delivery_limit_dead_letters(bench: &Bench) {
    let dead = bench.queue(BOTH[0]).await;
    let mut queue = bench.plain(QueueType::Quorum);
    queue.delivery_limit = Some(2);
    queue.dead_letters = dead_letters_to(&dead);
    bench.declare([queue.clone()]).await;
    bench.publish(&Address::queue(&queue.name), &message("a")).await;
    let mut consumer = bench.consume(&queue.name, 1).await;
    for round in 0..3 {
        let delivery = consumer.next().await;
        assert_eq!(delivery.redelivered, round > 0);
        delivery.receipt.settle(Settlement::Reject);
    }
    let delivery = bench.consume(&dead, 1).await.next().await;
    assert_eq!(body(&delivery), "a");
    let death = death(&delivery.message.headers, 0);
    assert_eq!((death.text("queue"), death.text("reason")), (Some(queue.name.as_str()), Some("delivery_limit")));
    consumer.nothing().await;
}
