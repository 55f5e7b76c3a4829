//! Declaring: the same twice is nothing, something else is told, and what is there is checked.

use std::time::Duration;

use mqguard::broker::{
    Address, Binding, BrokerError, ConsumeRequest, DeclareMode, Exchange, ExchangeKind, Mismatch, PublishError, Queue, QueueType,
    Topology,
};
use tokio::time::sleep;

use crate::harness::{BOTH, Bench, dead_letters_to, message, within};

fn queues(queues: impl IntoIterator<Item = Queue>) -> Topology {
    Topology { queues: queues.into_iter().collect(), ..Topology::default() }
}

/// A queue with every argument that its type can have.
fn full(bench: &Bench, queue_type: QueueType) -> Queue {
    let mut queue = bench.plain(queue_type);
    queue.message_ttl = Some(Duration::from_secs(60));
    queue.expires = Some(Duration::from_secs(600));
    queue.dead_letters = dead_letters_to("somewhere");
    queue.delivery_limit = (queue_type == QueueType::Quorum).then_some(7);
    queue
}

pub async fn the_same_twice_changes_nothing(bench: &Bench) {
    let topology = queues(BOTH.map(|queue_type| full(bench, queue_type)));
    bench.broker.declare(&topology, DeclareMode::Declare).await.unwrap();
    bench.send(&topology.queues[0].name, "kept").await;
    bench.broker.declare(&topology, DeclareMode::Declare).await.unwrap();
    bench.broker.declare(&topology, DeclareMode::Verify).await.unwrap();
    let queue = bench.plain(BOTH[0]);
    let name = bench.exchange(ExchangeKind::Topic, &[]).await;
    let topology = Topology {
        exchanges: vec![Exchange { name: name.clone(), kind: ExchangeKind::Topic }],
        bindings: vec![Binding { queue: queue.name.clone(), exchange: name, routing_key: "a.*".into() }],
        queues: vec![queue],
    };
    bench.broker.declare(&topology, DeclareMode::Declare).await.unwrap();
    bench.broker.declare(&topology, DeclareMode::Declare).await.unwrap();
}

async fn mismatch(bench: &Bench, queue: &Queue) -> Mismatch {
    match within(bench.broker.declare(&queues([queue.clone()]), DeclareMode::Declare)).await {
        Err(BrokerError::Mismatch(mismatch)) => mismatch,
        other => panic!("expected a mismatch, got {other:?}"),
    }
}

fn mismatched(queue: &Queue, argument: &str, declared: &str, actual: &str) -> Mismatch {
    Mismatch {
        what: "queue",
        name: queue.name.clone(),
        argument: argument.into(),
        declared: declared.into(),
        actual: actual.into(),
    }
}

pub async fn a_difference_is_named_with_both_values(bench: &Bench) {
    for queue_type in BOTH {
        let mut queue = full(bench, queue_type);
        bench.declare([queue.clone()]).await;
        queue.message_ttl = Some(Duration::from_secs(61));
        assert_eq!(mismatch(bench, &queue).await, mismatched(&queue, "x-message-ttl", "61000", "60000"));
        queue.message_ttl = None;
        assert_eq!(mismatch(bench, &queue).await, mismatched(&queue, "x-message-ttl", "none", "60000"));
        queue.message_ttl = Some(Duration::from_secs(60));
        queue.dead_letters = dead_letters_to("elsewhere");
        assert_eq!(mismatch(bench, &queue).await, mismatched(&queue, "x-dead-letter-routing-key", "elsewhere", "somewhere"));
        // The broker is none the worse for it.
        bench.send(&queue.name, "a").await;
    }
    let mut plain = bench.plain(QueueType::Classic);
    bench.declare([plain.clone()]).await;
    plain.expires = Some(Duration::from_secs(5));
    assert_eq!(mismatch(bench, &plain).await, mismatched(&plain, "x-expires", "5000", "none"));
}

pub async fn another_type_is_a_difference(bench: &Bench) {
    for (there, declared, names) in [
        (QueueType::Quorum, QueueType::Classic, ("classic", "quorum")),
        (QueueType::Classic, QueueType::Quorum, ("quorum", "classic")),
    ] {
        let mut queue = bench.plain(there);
        bench.declare([queue.clone()]).await;
        queue.queue_type = declared;
        assert_eq!(mismatch(bench, &queue).await, mismatched(&queue, "x-queue-type", names.0, names.1));
    }
    let name = bench.exchange(ExchangeKind::Direct, &[]).await;
    let topology =
        Topology { exchanges: vec![Exchange { name: name.clone(), kind: ExchangeKind::Fanout }], ..Topology::default() };
    let result = within(bench.broker.declare(&topology, DeclareMode::Declare)).await;
    let expected =
        Mismatch { what: "exchange", name, argument: "type".into(), declared: "fanout".into(), actual: "direct".into() };
    assert_eq!(result, Err(BrokerError::Mismatch(expected)));
}

pub async fn checking_finds_what_is_missing_and_ignores_arguments(bench: &Bench) {
    let mut queue = bench.plain(BOTH[0]);
    let missing = |what, name: &str| Err(BrokerError::Missing { what, name: name.into() });
    let check = |topology: Topology| async move { within(bench.broker.declare(&topology, DeclareMode::Verify)).await };
    assert_eq!(check(queues([queue.clone()])).await, missing("queue", &queue.name));
    // Checking does not declare.
    assert_eq!(check(queues([queue.clone()])).await, missing("queue", &queue.name));
    bench.declare([queue.clone()]).await;
    queue.message_ttl = Some(Duration::from_secs(1));
    assert_eq!(check(queues([queue])).await, Ok(()));
    let exchange = Exchange { name: bench.name("x"), kind: ExchangeKind::Direct };
    let topology = Topology { exchanges: vec![exchange.clone()], ..Topology::default() };
    assert_eq!(check(topology).await, missing("exchange", &exchange.name));
}

pub async fn skipping_does_nothing(bench: &Bench) {
    let queue = bench.plain(BOTH[0]);
    assert_eq!(bench.broker.declare(&queues([queue.clone()]), DeclareMode::Skip).await, Ok(()));
    let request = ConsumeRequest { queue: queue.name.clone(), tag: "t".into(), prefetch: 1 };
    match within(bench.broker.consume(request)).await {
        Err(error) => assert_eq!(error, BrokerError::Missing { what: "queue", name: queue.name }),
        Ok(_) => panic!("a queue that was never declared is consumed"),
    }
}

pub async fn a_binding_needs_both_ends(bench: &Bench) {
    let (queue, nowhere) = (bench.queue(BOTH[0]).await, bench.name("nowhere"));
    let exchange = bench.exchange(ExchangeKind::Direct, &[]).await;
    for (queue, exchange, what) in [(&nowhere, &exchange, "queue"), (&queue, &nowhere, "exchange")] {
        let binding = Binding { queue: queue.clone(), exchange: exchange.clone(), routing_key: "k".into() };
        let topology = Topology { bindings: vec![binding], ..Topology::default() };
        let result = within(bench.broker.declare(&topology, DeclareMode::Declare)).await;
        assert_eq!(result, Err(BrokerError::Missing { what, name: nowhere.clone() }));
    }
}

pub async fn a_queue_that_nobody_uses_expires(bench: &Bench) {
    for queue_type in BOTH {
        let mut queue = bench.plain(queue_type);
        queue.expires = Some(Duration::from_secs(1));
        bench.declare([queue.clone()]).await;
        // Somebody who consumes it keeps it.
        let consumer = bench.consume(&queue.name, 1).await;
        sleep(Duration::from_secs(2)).await;
        bench.send(&queue.name, "a").await;
        consumer.close().await;
        // Publishing is no use.
        let address = Address::queue(&queue.name);
        within(async {
            while bench.broker.publish(&address, &message("a")).await != Err(PublishError::Unroutable(address.clone())) {
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    }
}
