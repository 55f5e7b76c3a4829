//! What the broker itself sends on: after its time, never before, with its history.

use std::time::Duration;

use mqguard::broker::{Address, DeadLetterTarget, ExchangeKind, HeaderValue, Queue, QueueType, Settlement};
use tokio::time::{Instant, sleep};

use crate::harness::{BOTH, Bench, body, dead_letters_to, death, message};

/// Brokers keep time in whole milliseconds.
const RESOLUTION: Duration = Duration::from_millis(1);

/// What a broker may be late by; more than enough for a busy machine.
const LATE: Duration = Duration::from_secs(10);

/// A queue that holds messages for a time and then sends them to `target`.
fn hold(bench: &Bench, queue_type: QueueType, time: Duration, target: &str) -> Queue {
    let mut queue = bench.plain(queue_type);
    queue.message_ttl = Some(time);
    queue.dead_letters = dead_letters_to(target);
    queue
}

#[track_caller]
fn waited(since: Instant, time: Duration) {
    let elapsed = since.elapsed();
    assert!(elapsed + RESOLUTION >= time, "came after {elapsed:?}, before {time:?}");
    assert!(elapsed < time + LATE, "came after {elapsed:?}, long after {time:?}");
}

pub async fn a_message_waits_its_time(bench: &Bench) {
    for queue_type in BOTH {
        for time in [Duration::ZERO, Duration::from_millis(300)] {
            let target = bench.queue(queue_type).await;
            let hold = hold(bench, queue_type, time, &target);
            bench.declare([hold.clone()]).await;
            let mut consumer = bench.consume(&target, 10).await;
            let sent = Instant::now();
            bench.send(&hold.name, "a").await;
            bench.send(&hold.name, "b").await;
            assert_eq!(consumer.accept().await, "a");
            waited(sent, time);
            assert_eq!(consumer.accept().await, "b");
            consumer.nothing().await;
            assert!(bench.drain(&hold.name).await.is_empty());
        }
    }
}

pub async fn a_long_wait_does_not_hold_up_a_short_one(bench: &Bench) {
    for queue_type in BOTH {
        let target = bench.queue(queue_type).await;
        let [long, short] = [2000, 200].map(|millis| hold(bench, queue_type, Duration::from_millis(millis), &target));
        bench.declare([long.clone(), short.clone()]).await;
        let mut consumer = bench.consume(&target, 10).await;
        let sent = Instant::now();
        bench.send(&long.name, "long").await;
        bench.send(&short.name, "short").await;
        assert_eq!(consumer.accept().await, "short");
        assert!(sent.elapsed() < Duration::from_millis(2000));
        assert_eq!(consumer.accept().await, "long");
        waited(sent, Duration::from_millis(2000));
    }
}

pub async fn the_history_is_told(bench: &Bench) {
    for queue_type in BOTH {
        let target = bench.queue(queue_type).await;
        let letters = bench.exchange(ExchangeKind::Direct, &[(&target, "dead")]).await;
        let mut queue = bench.plain(queue_type);
        queue.message_ttl = Some(Duration::from_millis(1_100));
        queue.dead_letters = Some(DeadLetterTarget { exchange: letters.clone(), routing_key: "dead".into() });
        bench.declare([queue.clone()]).await;
        let orders = bench.exchange(ExchangeKind::Topic, &[(&queue.name, "order.*")]).await;
        let before = bench.broker.now();
        bench.publish(&Address::exchange(&orders, "order.new"), &message("a")).await;
        let delivery = bench.consume(&target, 1).await.next().await;
        assert_eq!((delivery.exchange.as_str(), delivery.routing_key.as_str()), (letters.as_str(), "dead"));
        assert!(!delivery.redelivered);

        let headers = &delivery.message.headers;
        let death = death(headers, 0);
        assert_eq!((death.text("queue"), death.text("reason")), (Some(queue.name.as_str()), Some("expired")));
        assert_eq!(death.text("exchange"), Some(orders.as_str()));
        assert_eq!(death.get("routing-keys"), Some(&HeaderValue::Array(vec!["order.new".into()])));
        assert_eq!(death.get("count"), Some(&HeaderValue::I64(1)));
        let Some(HeaderValue::Timestamp(time)) = death.get("time") else { panic!("no time: {death:?}") };
        let before = before.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert!((before + 1..before + 60).contains(time), "{time} {before}");
        assert_eq!(headers.get("x-death").and_then(HeaderValue::as_array).map(<[_]>::len), Some(1));
        assert_eq!(headers.text("x-first-death-queue"), Some(queue.name.as_str()));
        assert_eq!(headers.text("x-first-death-reason"), Some("expired"));
        assert_eq!(headers.text("x-first-death-exchange"), Some(orders.as_str()));
    }
}

/// Through two hold queues: the newest death comes first, the first one stays the first.
pub async fn every_hop_adds_to_the_history(bench: &Bench) {
    for queue_type in BOTH {
        let target = bench.queue(queue_type).await;
        let second = hold(bench, queue_type, Duration::from_millis(20), &target);
        let first = hold(bench, queue_type, Duration::from_millis(20), &second.name);
        bench.declare([first.clone(), second.clone()]).await;
        bench.send(&first.name, "a").await;
        let delivery = bench.consume(&target, 1).await.next().await;
        let headers = &delivery.message.headers;
        assert_eq!(headers.get("x-death").and_then(HeaderValue::as_array).map(<[_]>::len), Some(2));
        assert_eq!(death(headers, 0).text("queue"), Some(second.name.as_str()));
        assert_eq!(death(headers, 1).text("queue"), Some(first.name.as_str()));
        assert_eq!(headers.text("x-first-death-queue"), Some(first.name.as_str()));
    }
}

pub async fn a_message_may_have_a_time_of_its_own(bench: &Bench) {
    for queue_type in BOTH {
        let target = bench.queue(queue_type).await;
        let mut queue = bench.plain(queue_type);
        queue.dead_letters = dead_letters_to(&target);
        bench.declare([queue.clone()]).await;
        let mut consumer = bench.consume(&target, 1).await;
        let mut expiring = message("a");
        expiring.properties.expiration = Some("200".into());
        let sent = Instant::now();
        bench.publish(&Address::queue(&queue.name), &expiring).await;
        let delivery = consumer.next().await;
        waited(sent, Duration::from_millis(200));
        // It would expire again where it is now: it is kept as history only.
        assert_eq!(delivery.message.properties.expiration, None);
        assert_eq!(death(&delivery.message.headers, 0).text("original-expiration"), Some("200"));
    }
}

pub async fn the_shorter_of_two_times_counts(bench: &Bench) {
    for queue_type in BOTH {
        let target = bench.queue(queue_type).await;
        let hold = hold(bench, queue_type, Duration::from_millis(200), &target);
        bench.declare([hold.clone()]).await;
        let mut consumer = bench.consume(&target, 1).await;
        for expiration in ["60000", "50"] {
            let mut expiring = message(expiration);
            expiring.properties.expiration = Some(expiration.into());
            let sent = Instant::now();
            bench.publish(&Address::queue(&hold.name), &expiring).await;
            assert_eq!(consumer.accept().await, expiration);
            waited(sent, Duration::from_millis(if expiration == "50" { 50 } else { 200 }));
        }
    }
}

pub async fn without_a_target_what_expires_is_gone(bench: &Bench) {
    for queue_type in BOTH {
        let mut queue = bench.plain(queue_type);
        queue.message_ttl = Some(Duration::from_millis(100));
        bench.declare([queue.clone()]).await;
        bench.send(&queue.name, "a").await;
        sleep(Duration::from_millis(300)).await;
        assert!(bench.drain(&queue.name).await.is_empty());
    }
}

/// What is out does not expire; handed back late it does, at once.
pub async fn what_is_out_does_not_expire(bench: &Bench) {
    for queue_type in BOTH {
        let target = bench.queue(queue_type).await;
        let hold = hold(bench, queue_type, Duration::from_secs(1), &target);
        bench.declare([hold.clone()]).await;
        let (mut consumer, mut expired) = (bench.consume(&hold.name, 1).await, bench.consume(&target, 1).await);
        bench.send(&hold.name, "a").await;
        let delivery = consumer.next().await;
        sleep(Duration::from_millis(1200)).await;
        expired.nothing().await;
        delivery.receipt.settle(Settlement::Return);
        assert_eq!(body(&expired.next().await), "a", "{queue_type:?}");
        consumer.nothing().await;
    }
}
