//! What only a server can do: refuse, break and hold up.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mqguard::broker::{
    Address, Broker, BrokerError, DeclareMode, Delivery, HeaderValue, Headers, Message, PublishError, Queue, QueueType, RabbitMq,
    Settlement, Topology,
};
use tokio::time::timeout;

use crate::harness::{BOTH, Bench, Consumer, PATIENCE, body, dead_letters_to, message, within};
use crate::server::{rabbitmq_broker, rabbitmq_url, rabbitmqctl};

macro_rules! on_rabbitmq {
    ($($run:ident: $($test:ident),+ $(,)?);+ $(;)?) => {
        mod rabbitmq {
            $($(#[tokio::test]
            #[ignore = "needs RabbitMQ: cargo xtask test"]
            async fn $test() {
                crate::server::$run(super::$test).await;
            })+)+
        }
    };
}

on_rabbitmq! {
    rabbitmq:
        exactly_the_unacked_come_again,
        a_queue_deleted_under_its_consumer,
        log_in_is_refused,
        a_user_without_rights_is_refused,
        headers_up_to_the_frame_size,
        what_cannot_be_sent_is_refused,
        what_the_broker_refuses,
        a_full_queue_refuses,
        large_bodies,
                refusals_do_not_use_up_the_connection,
        another_node_takes_over,
        a_closed_broker_lets_go;
    rabbitmq_alone:
        a_lost_connection,
        a_connection_lost_while_publishing,
        an_acknowledgement_timeout,
        a_broker_that_holds_up_publishers,
        a_restart;
}

/// The address and the rest of the test server's URL: `user:password@`, `host:port`, `/virtual-host?...`.
fn url_parts() -> (String, String, String) {
    let url = rabbitmq_url();
    let rest = url.split_once("://").unwrap().1;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (log_in, host) = authority.rsplit_once('@').map_or(("guest:guest", authority), |(log_in, host)| (log_in, host));
    (format!("{log_in}@"), host.into(), tail.into())
}

fn refused(result: Result<(), PublishError>) -> String {
    match result {
        Err(PublishError::Refused { reason, .. }) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Acks are merged, and yet only what was acked is; and none gets lost, though a quorum queue takes no more than 32 of one channel at once.
async fn exactly_the_unacked_come_again(bench: &Bench) {
    for queue_type in BOTH {
        for cancelled_before in [false, true] {
            let queue = bench.queue(queue_type).await;
            for n in 1..=200 {
                bench.send(&queue, &n.to_string()).await;
            }
            let mut consumer = bench.consume(&queue, 200).await;
            let deliveries = consumer.take(200).await;
            if cancelled_before {
                consumer.cancel().await;
            }
            let (even, odd): (Vec<_>, Vec<_>) =
                deliveries.into_iter().partition(|delivery| body(delivery).parse::<u32>().unwrap() % 2 == 0);
            even.into_iter().for_each(|delivery| delivery.receipt.settle(Settlement::Ack));
            consumer.close().await;
            drop(odd);
            let mut next = bench.consume(&queue, 200).await;
            let again = next.take(100).await;
            next.nothing().await;
            let mut again: Vec<_> =
                again.iter().map(|delivery| (body(delivery).parse().unwrap(), delivery.redelivered)).collect();
            again.sort_unstable();
            assert_eq!(again, (0..100).map(|n| (2 * n + 1, true)).collect::<Vec<(u32, bool)>>());
        }
    }
}

async fn a_queue_deleted_under_its_consumer(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        bench.send(&queue, "a").await;
        let mut consumer = bench.consume(&queue, 10).await;
        let delivery = consumer.next().await;
        rabbitmq_broker().delete_queue(&queue).await.unwrap();
        let BrokerError::Unavailable(reason) = consumer.ended().await else { panic!() };
        assert!(reason.contains(&format!("the queue `{queue}` was deleted")), "{reason}");
        assert_eq!(consumer.ended().await, BrokerError::Unavailable(reason));
        delivery.receipt.settle(Settlement::Ack);
        consumer.close().await;
        assert_eq!(bench.try_consume(&queue).await.err(), Some(BrokerError::Missing { what: "queue", name: queue.clone() }));
        bench.declare([Queue::new(&queue, queue_type)]).await;
        bench.send(&queue, "b").await;
        assert_eq!(bench.drain(&queue).await, ["b"]);
    }
}

async fn log_in_is_refused(_: &Bench) {
    let (log_in, host, tail) = url_parts();
    let user = log_in.split(':').next().unwrap();
    for url in [
        format!("amqp://{user}:s3cret-s3cret@{host}{tail}"),
        format!("amqp://nobody-at-all:s3cret-s3cret@{host}{tail}"),
        format!("amqp://{log_in}{host}/no-such-virtual-host"),
    ] {
        let broker = RabbitMq::new(&url).unwrap();
        let error = within(broker.ping()).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(matches!(error, BrokerError::Refused(_)), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
        assert!(text.contains(&host), "{text}");
        let vhost = url.contains("no-such-virtual-host");
        assert!(text.contains(if vhost { "vhost no-such-virtual-host not found" } else { "403 ACCESS_REFUSED" }), "{text}");
        let error = within(broker.publish(&Address::queue("q"), &message("a"))).await.unwrap_err();
        assert!(matches!(&error, PublishError::Unavailable { reason, .. } if !reason.contains("s3cret")), "{error:?}");
    }
}

async fn a_user_without_rights_is_refused(bench: &Bench) {
    let queue = bench.queue(QueueType::Classic).await;
    let user = bench.name("user");
    rabbitmqctl(["add_user", &user, "password"]).await;
    let (_, host, tail) = url_parts();
    let vhost = match tail.split('?').next().unwrap_or_default() {
        "" | "/" => "/".to_owned(),
        path => path[1..].replace("%2F", "/").replace("%2f", "/"),
    };
    rabbitmqctl(["set_permissions", "-p", &vhost, &user, "", "", ""]).await;
    let broker = RabbitMq::new(&format!("amqp://{user}:password@{host}{tail}")).unwrap();
    let theirs = Bench::new(Arc::new(broker.clone()));
    let consumed = theirs.try_consume(&queue).await.err();
    let topology = Topology { queues: vec![theirs.plain(QueueType::Classic)], ..Topology::default() };
    let declared = within(broker.declare(&topology, DeclareMode::Declare)).await;
    let published = within(broker.publish(&Address::exchange("amq.topic", "a"), &message("a"))).await;
    broker.close().await;
    rabbitmqctl(["delete_user", &user]).await;
    assert!(matches!(consumed, Some(BrokerError::Refused(_))), "{consumed:?}");
    assert!(matches!(declared, Err(BrokerError::Refused(_))), "{declared:?}");
    assert!(refused(published).contains("ACCESS_REFUSED"));
}

/// The largest header that fits is taken, and comes back even with what the broker adds to it; one byte more is refused here, for the
/// connection would break over it.
async fn headers_up_to_the_frame_size(bench: &Bench) {
    let queue = bench.queue(QueueType::Classic).await;
    bench.broker.ping().await.unwrap();
    let fixed = {
        let mut headers = Headers::new();
        headers.insert("h", "");
        // Frame, content header and delivery mode.
        8 + 14 + 1 + headers.encoded_len()
    };
    // Two KiB are left for what the broker adds.
    let limit = bench.broker.frame_max() - 2048;
    let sized = |length: usize| {
        let mut message = message("a");
        message.headers.insert("h", HeaderValue::Text(vec![b'x'; length - fixed].into()));
        message
    };
    bench.publish(&Address::queue(&queue), &sized(limit)).await;
    let reason = refused(within(bench.broker.publish(&Address::queue(&queue), &sized(limit + 1))).await);
    assert!(reason.contains(&format!("take {} bytes", limit + 1)) && reason.contains(&format!("room for {limit}")), "{reason}");
    refused(within(bench.broker.publish(&Address::queue(&queue), &sized(10 * limit))).await);
    let mut consumer = bench.consume(&queue, 10).await;
    let delivery = consumer.next().await;
    assert_eq!(delivery.message.headers, sized(limit).headers);
    consumer.nothing().await;
    for queue_type in BOTH {
        let target = bench.queue(queue_type).await;
        let mut hold = bench.plain(queue_type);
        hold.message_ttl = Some(Duration::from_millis(10));
        hold.dead_letters = dead_letters_to(&target);
        bench.declare([hold.clone()]).await;
        bench.publish(&Address::queue(&hold.name), &sized(limit)).await;
        let mut consumer = bench.consume(&target, 1).await;
        for _ in 0..3 {
            let delivery = consumer.next().await;
            assert_eq!(delivery.message.headers.get("h"), sized(limit).headers.get("h"));
            delivery.receipt.settle(Settlement::Reject);
        }
    }
}

/// With what the client library would panic over, or the broker would break the connection over.
async fn what_cannot_be_sent_is_refused(bench: &Bench) {
    let queue = bench.queue(QueueType::Classic).await;
    let long = "x".repeat(256);
    let (mut nan, mut name, mut property) = (message("a"), message("a"), message("a"));
    nan.headers.insert("nan", HeaderValue::Array(vec![f64::NAN.into()]));
    name.headers.insert(long.clone(), "a");
    property.properties.message_id = Some(long.clone());
    for (message, part) in [(&nan, "`nan` is NaN"), (&name, "the name of a header has 256"), (&property, "`message_id` has 256")]
    {
        let reason = refused(within(bench.broker.publish(&Address::queue(&queue), message)).await);
        assert!(reason.contains(part), "{reason}");
    }
    let reason = refused(within(bench.broker.publish(&Address::queue(&long), &message("a"))).await);
    assert!(reason.contains("the routing key has 256"), "{reason}");
    let topology = Topology { queues: vec![Queue::new(&long, QueueType::Classic)], ..Topology::default() };
    let declared = within(bench.broker.declare(&topology, DeclareMode::Declare)).await;
    assert!(matches!(declared, Err(BrokerError::Unsupported(_))), "{declared:?}");
    assert!(matches!(bench.try_consume(&long).await.err(), Some(BrokerError::Unsupported(_))));
    bench.send(&queue, "after").await;
    assert_eq!(bench.drain(&queue).await, ["after"]);
}

async fn what_the_broker_refuses(bench: &Bench) {
    let queue = bench.queue(QueueType::Quorum).await;
    let (mut user, mut expiration) = (message("a"), message("a"));
    user.properties.user_id = Some("somebody-else".into());
    expiration.properties.expiration = Some("soon".into());
    for (message, part) in [(&user, "user_id"), (&expiration, "expiration")] {
        let reason = refused(within(bench.broker.publish(&Address::queue(&queue), message)).await);
        assert!(reason.contains("PRECONDITION_FAILED") && reason.contains(part), "{reason}");
    }
    let mut invalid = bench.plain(QueueType::Classic);
    invalid.expires = Some(Duration::ZERO);
    let topology = Topology { queues: vec![invalid], ..Topology::default() };
    let declared = within(bench.broker.declare(&topology, DeclareMode::Declare)).await;
    assert!(matches!(&declared, Err(BrokerError::Unsupported(reason)) if reason.contains("x-expires")), "{declared:?}");
    bench.send(&queue, "after").await;
    assert_eq!(bench.drain(&queue).await, ["after"]);
}

async fn a_full_queue_refuses(bench: &Bench) {
    let queue = bench.queue(QueueType::Classic).await;
    let policy = r#"{"max-length": 2, "overflow": "reject-publish"}"#;
    rabbitmqctl(["set_policy", "--apply-to", "queues", &queue, &format!("^{queue}$"), policy]).await;
    let mut results = Vec::new();
    for _ in 0..4 {
        results.push(within(bench.broker.publish(&Address::queue(&queue), &message("a"))).await);
    }
    rabbitmqctl(["clear_policy", &queue]).await;
    assert!(matches!(results.last(), Some(Err(PublishError::Refused { .. }))), "{results:?}");
    let kept = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(bench.drain(&queue).await.len(), kept);
}

async fn large_bodies(bench: &Bench) {
    let queue = bench.queue(QueueType::Classic).await;
    let large = Message { body: vec![7; 16_000_000].into(), ..Message::default() };
    bench.publish(&Address::queue(&queue), &large).await;
    let delivery = bench.consume(&queue, 1).await.next().await;
    assert!(delivery.message.body == large.body);
    delivery.receipt.settle(Settlement::Ack);
    // More than any version takes by default.
    let too_large = Message { body: vec![7; 134_217_729].into(), ..Message::default() };
    let reason = refused(within(bench.broker.publish(&Address::queue(&queue), &too_large)).await);
    assert!(reason.contains("134217729"), "{reason}");
    bench.send(&queue, "after").await;
}

/// The client library loses a channel for good with each one that the broker closes.
async fn refusals_do_not_use_up_the_connection(_: &Bench) {
    let (log_in, host, tail) = url_parts();
    let path = tail.split('?').next().unwrap();
    let broker = RabbitMq::new(&format!("amqp://{log_in}{host}{path}?channel_max=8")).unwrap();
    let theirs = Bench::new(Arc::new(broker.clone()));
    let queue = theirs.plain(QueueType::Classic);
    let topology = Topology { queues: vec![queue.clone()], ..Topology::default() };
    for _ in 0..30 {
        let address = Address::exchange(&queue.name, "k");
        assert_eq!(within(broker.publish(&address, &message("a"))).await, Err(PublishError::Unroutable(address)));
        let missing = Err(BrokerError::Missing { what: "queue", name: queue.name.clone() });
        assert_eq!(within(broker.declare(&topology, DeclareMode::Verify)).await, missing);
        assert_eq!(within(broker.ping()).await, Ok(()));
    }
    theirs.declare([queue.clone()]).await;
    theirs.send(&queue.name, "a").await;
    assert_eq!(theirs.drain(&queue.name).await, ["a"]);
    broker.delete_queue(&queue.name).await.unwrap();
    broker.close().await;
}

async fn another_node_takes_over(_: &Bench) {
    let (log_in, host, tail) = url_parts();
    for hosts in [format!("127.0.0.1:1,{host}"), format!("{host},127.0.0.1:1")] {
        for _ in 0..4 {
            let broker = RabbitMq::new(&format!("amqp://{log_in}{hosts}{tail}")).unwrap();
            assert_eq!(within(broker.ping()).await, Ok(()));
            within(broker.close()).await;
        }
    }
}

async fn a_closed_broker_lets_go(bench: &Bench) {
    let queue = bench.queue(QueueType::Classic).await;
    bench.send(&queue, "a").await;
    let broker = rabbitmq_broker();
    let theirs = Bench::new(Arc::new(broker.clone()));
    let mut consumer = theirs.consume(&queue, 1).await;
    let delivery = consumer.next().await;
    within(broker.close()).await;
    timeout(PATIENCE, delivery.receipt.closed()).await.unwrap();
    assert!(matches!(consumer.ended().await, BrokerError::Unavailable(_)));
    assert!(matches!(within(broker.ping()).await, Err(BrokerError::Unavailable(_))));
    assert_eq!(bench.drain(&queue).await, ["a"]);
}

async fn a_lost_connection(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        for n in 0..5 {
            bench.send(&queue, &n.to_string()).await;
        }
        let mut consumer = bench.consume(&queue, 3).await;
        let mut out = consumer.take(3).await;
        let done = out.pop().unwrap();
        assert_eq!(body(&done), "2");
        done.receipt.settle(Settlement::Ack);
        out.push(consumer.next().await);
        assert_eq!(body(&out[2]), "3");
        rabbitmqctl(["close_all_connections", "a test"]).await;
        // Nobody needs to wait for the next delivery to be told.
        timeout(PATIENCE, out[0].receipt.closed()).await.unwrap();
        assert!(!out[0].receipt.is_open());
        let BrokerError::Unavailable(reason) = consumer.ended().await else { panic!() };
        assert!(reason.contains("320") && reason.contains("a test"), "{reason}");
        // What is settled too late has no effect, and does not harm what comes after.
        out.into_iter().for_each(|delivery| delivery.receipt.settle(Settlement::Ack));
        assert!(within(close(consumer)).await.is_err());
        // The publishing connection is gone as well; the first publish finds out and comes back.
        bench.send(&queue, "5").await;
        let mut again = bench.consume(&queue, 10).await;
        let deliveries = again.take(5).await;
        again.nothing().await;
        let mut deliveries: Vec<_> = deliveries.iter().map(|delivery| (body(delivery), delivery.redelivered)).collect();
        deliveries.sort();
        let expected = [("0", true), ("1", true), ("3", true), ("4", false), ("5", false)];
        assert_eq!(deliveries, expected.map(|(body, redelivered)| (body.to_owned(), redelivered)), "{queue_type:?}");
    }
}

/// What is confirmed is there, and what was not sent is not.
async fn a_connection_lost_while_publishing(bench: &Bench) {
    let queue = bench.queue(QueueType::Quorum).await;
    let mut publishes = tokio::task::JoinSet::new();
    let padding = "x".repeat(20_000);
    for n in 0..2000 {
        let (broker, address) = (Arc::clone(&bench.broker), Address::queue(&queue));
        let message = message(&format!("{n} {padding}"));
        publishes.spawn(async move { (n, broker.publish(&address, &message).await) });
    }
    let (_, results) = tokio::join!(rabbitmqctl(["close_all_connections", "a test"]), within(publishes.join_all()));
    let number = |delivery: Delivery| {
        let number = body(&delivery).split_once(' ').unwrap().0.parse::<u32>().unwrap();
        delivery.receipt.settle(Settlement::Ack);
        number
    };
    let (mut there, mut consumer) = (BTreeSet::new(), bench.consume(&queue, 200).await);
    let confirmed: BTreeSet<_> = results.iter().filter(|(_, result)| result.is_ok()).map(|(n, _)| *n).collect();
    while !there.is_superset(&confirmed) {
        there.insert(number(consumer.next().await));
    }
    while let Some(delivery) = consumer.next_if_any().await {
        there.insert(number(delivery));
    }
    for (n, result) in results {
        match result {
            Ok(()) | Err(PublishError::Unknown { .. }) => {}
            Err(PublishError::Unavailable { .. }) => assert!(!there.contains(&n), "{n} was not sent and is there"),
            Err(error) => panic!("{error}"),
        }
    }
}

async fn close(consumer: Consumer) -> Result<(), BrokerError> {
    consumer.into_inner().close().await
}

/// The broker closes the channel only, and the connection looks well; from 4.3 on it closes not even that, but cancels the consumer.
async fn an_acknowledgement_timeout(bench: &Bench) {
    let queue = bench.queue(QueueType::Quorum).await;
    let set = "application:set_env(rabbit, consumer_timeout, 1000), application:set_env(rabbit, channel_tick_interval, 500).";
    rabbitmqctl(["eval", set]).await;
    bench.send(&queue, "a").await;
    let mut consumer = bench.consume(&queue, 1).await;
    let delivery = consumer.next().await;
    let version = rabbitmqctl(["version"]).await;
    let mut version = version.trim().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let closes = (version.next(), version.next()) < (Some(4), Some(3));
    let closed = if closes { timeout(PATIENCE, delivery.receipt.closed()).await } else { Ok(()) };
    let ended = consumer.ended().await;
    let reset =
        "application:set_env(rabbit, consumer_timeout, 1800000), application:set_env(rabbit, channel_tick_interval, 60000).";
    rabbitmqctl(["eval", reset]).await;
    closed.unwrap();
    let BrokerError::Unavailable(reason) = ended else { panic!("{ended:?}") };
    assert!(reason.contains(if closes { "timed out" } else { "acknowledgement timeout" }) && reason.contains(&queue), "{reason}");
    let again = bench.consume(&queue, 1).await.next().await;
    assert_eq!((body(&again).as_str(), again.redelivered), ("a", true));
}

async fn a_broker_that_holds_up_publishers(bench: &Bench) {
    let (queue, other) = (bench.queue(QueueType::Quorum).await, bench.queue(QueueType::Quorum).await);
    for n in 0..3 {
        bench.send(&queue, &n.to_string()).await;
    }
    let mut consumer = bench.consume(&queue, 1).await;
    rabbitmqctl(["set_vm_memory_high_watermark", "0.0000001"]).await;
    let mut publishes = tokio::task::JoinSet::new();
    for n in 0..3 {
        let (broker, address) = (Arc::clone(&bench.broker), Address::queue(&other));
        publishes.spawn(async move { broker.publish(&address, &message(&n.to_string())).await });
    }
    let early = timeout(Duration::from_secs(1), publishes.join_next()).await;
    // Another one, now that the broker has said that it blocks.
    let (broker, address) = (Arc::clone(&bench.broker), Address::queue(&other));
    publishes.spawn(async move { broker.publish(&address, &message("late")).await });
    // Consuming and acking go on.
    let mut consumed = Vec::new();
    for _ in 0..3 {
        consumed.push(timeout(PATIENCE, consumer.accept()).await);
    }
    let still = timeout(Duration::from_millis(300), publishes.join_next()).await;
    rabbitmqctl(["set_vm_memory_high_watermark", "0.4"]).await;
    let results = within(publishes.join_all()).await;
    assert!(early.is_err() && still.is_err(), "{early:?} {still:?}");
    assert!(consumed.iter().all(Result::is_ok));
    assert!(results.len() == 4 && results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(bench.drain(&other).await.len(), 4);
}

async fn a_restart(bench: &Bench) {
    let queue = bench.queue(QueueType::Quorum).await;
    bench.send(&queue, "a").await;
    let mut consumer = bench.consume(&queue, 1).await;
    let delivery = consumer.next().await;
    rabbitmqctl(["stop_app"]).await;
    assert!(matches!(consumer.ended().await, BrokerError::Unavailable(_)));
    assert!(matches!(within(bench.broker.ping()).await, Err(BrokerError::Unavailable(_))));
    assert!(matches!(
        within(bench.broker.publish(&Address::queue(&queue), &message("b"))).await,
        Err(PublishError::Unavailable { .. })
    ));
    rabbitmqctl(["start_app"]).await;
    drop(delivery);
    within(async {
        while bench.broker.ping().await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    bench.send(&queue, "c").await;
    assert_eq!(bench.drain(&queue).await, ["a", "c"]);
}
