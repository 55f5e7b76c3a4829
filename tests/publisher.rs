//! Publishing: what a message carries by itself, and what the caller is told when it cannot be stored.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;

use std::collections::HashMap;
use std::time::SystemTime;

use harness::{Publishing, Scene, guarded, ms, s};
use mqguard::broker::Broker;
use mqguard::{Guard, HeaderValue, Message, PublishError, consumer};
use serde::Serialize;
use serde_json::{Value, json};

#[consumer(queue = "routed", dlq = "dlq.routed", bind(exchange = "orders", routing_key = "order.*"))]
async fn routed(_body: Value) {}

/// A scene whose queues are there and not consumed.
async fn declared() -> Scene {
    let scene = Scene::smooth();
    scene.guard().consumer::<guarded>().consumer::<routed>().declare().await.unwrap();
    scene
}

fn only(scene: &Scene, queue: &str) -> Message {
    let mut messages = scene.queues.messages(queue);
    assert_eq!(messages.len(), 1);
    messages.remove(0)
}

#[tokio::test(start_paused = true)]
async fn a_message_has_an_id_a_time_and_is_persistent() {
    let scene = declared().await;
    tokio::time::sleep(s(3600)).await;
    let id = scene.publisher().json(&json!({ "a": 1 })).unwrap().to_queue("work").await.unwrap();
    let message = only(&scene, "work");
    assert_eq!(message.body, br#"{"a":1}"#.as_slice());
    let properties = &message.properties;
    assert_eq!((properties.message_id.as_deref(), properties.delivery_mode), (Some(id.as_str()), Some(2)));
    assert_eq!(properties.content_type.as_deref(), Some("application/json"));
    let now = scene.queues.now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert_eq!(properties.timestamp, Some(now));
    assert!(message.headers.is_empty() && properties.priority.is_none() && properties.expiration.is_none());
}

/// Version 7: sorted by time.
#[tokio::test(start_paused = true)]
async fn ids_are_unique_and_sorted_by_time() {
    let scene = declared().await;
    let publisher = scene.publisher();
    let mut ids = Vec::new();
    for n in 0..1000 {
        ids.push(publisher.json(&n).unwrap().to_queue("work").await.unwrap());
    }
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "sorted, and so unique");
    for id in ids {
        let groups: Vec<&str> = id.split('-').collect();
        assert_eq!(groups.iter().map(|group| group.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
        assert!(groups[2].starts_with('7') && "89ab".contains(&groups[3][..1]), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_draft_says_everything_else() {
    let scene = declared().await;
    let draft = scene.publisher().json(&"body").unwrap().message_id("m-1").correlation_id("c-1").priority(7);
    let draft = draft.header("tenant", "a").header("n", 5i64).header("tenant", "b").with(|message| {
        message.properties.reply_to = Some("answers".into());
        message.properties.content_type = Some("application/vnd.order+json".into());
        message.properties.expiration = Some("60000".into());
    });
    assert_eq!(draft.to_queue("work").await.unwrap(), "m-1");
    let message = only(&scene, "work");
    let properties = &message.properties;
    let texts = [&properties.message_id, &properties.correlation_id, &properties.reply_to, &properties.content_type];
    assert_eq!(texts.map(|text| text.as_deref().unwrap()), ["m-1", "c-1", "answers", "application/vnd.order+json"]);
    assert_eq!((properties.priority, message.headers.len()), (Some(7), 2));
    assert_eq!((message.headers.text("tenant"), message.headers.get("n")), (Some("b"), Some(&HeaderValue::I64(5))));
    // The message's own time to live counts.
    tokio::time::sleep(s(61)).await;
    assert_eq!((scene.queues.depth("work"), scene.queues.depth("dlq.work")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn bytes_have_no_content_type_and_can_be_anything() {
    let scene = declared().await;
    for body in [&b""[..], &[0xff, 0x00, 0xfe]] {
        scene.publisher().bytes(body.to_vec()).to_queue("routed").await.unwrap();
    }
    let messages = scene.queues.messages("routed");
    assert!(messages.iter().all(|message| message.properties.content_type.is_none()));
    assert_eq!(messages[1].body, [0xff, 0x00, 0xfe].as_slice());
}

#[tokio::test(start_paused = true)]
async fn an_exchange_routes() {
    let scene = declared().await;
    scene.publisher().json(&1).unwrap().to_exchange("orders", "order.paid").await.unwrap();
    assert_eq!(scene.queues.depth("routed"), 1);
}

/// What no queue takes is an error, not a silence.
#[tokio::test(start_paused = true)]
async fn what_no_queue_takes_is_told() {
    let scene = declared().await;
    let publisher = scene.publisher();
    let to_queue = publisher.json(&1).unwrap().to_queue("no.such.queue").await.unwrap_err();
    assert!(matches!(&to_queue, PublishError::Unroutable(address) if address.routing_key == "no.such.queue"), "{to_queue}");
    assert!(to_queue.to_string().contains("queue `no.such.queue`"), "{to_queue}");
    for (exchange, key) in [("no.such.exchange", "order.paid"), ("orders", "invoice.paid")] {
        let error = publisher.json(&1).unwrap().to_exchange(exchange, key).await.unwrap_err();
        assert!(matches!(error, PublishError::Unroutable(_)), "{error}");
        assert!(error.to_string().contains(exchange) && error.to_string().contains(key), "{error}");
    }
    assert_eq!(["work", "routed"].map(|queue| scene.queues.depth(queue)), [0, 0]);
}

/// Each outcome comes to the caller as it is: the publisher does not try again by itself.
#[tokio::test(start_paused = true)]
async fn the_caller_learns_what_happened() {
    let scene = declared().await;
    let publisher = scene.guard().publisher();
    let cases = [
        (Publishing::Refused, "refused the message", 0),
        (Publishing::Unavailable, "was not sent", 0),
        (Publishing::UnknownNotStored, "is not known", 0),
        (Publishing::UnknownStored, "is not known", 1),
    ];
    for (fault, said, stored) in cases {
        scene.broker.plan("work", fault);
        let before = scene.queues.depth("work");
        let error = publisher.json(&1).unwrap().message_id("m-1").to_queue("work").await.unwrap_err();
        assert!(error.to_string().contains(said), "{fault:?}: {error}");
        assert_eq!(scene.queues.depth("work") - before, stored, "{fault:?}");
    }
    assert_eq!(scene.broker.published().len(), 4);
    scene.queues.set_available(false);
    let error = publisher.json(&1).unwrap().to_queue("work").await.unwrap_err();
    assert!(matches!(error, PublishError::Unavailable { .. }), "{error}");
}

/// After "unknown", publishing again under the same id is safe.
#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_published_again_under_its_id() {
    let scene = Scene::smooth();
    let running = scene.start::<guarded>().await;
    scene.broker.plan("work", Publishing::UnknownStored);
    let draft = || running.publisher().json(&1).unwrap().message_id("m-1");
    assert!(matches!(draft().to_queue("work").await, Err(PublishError::Unknown { .. })));
    draft().to_queue("work").await.unwrap();
    scene.until("both are settled", |book| book.count("processed") + book.count("duplicate") == 2).await;
    assert_eq!(scene.journal.book().effects(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_works_before_while_and_after_the_guard_runs() {
    let scene = Scene::smooth();
    let guard = scene.guard().consumer::<guarded>();
    let before = guard.publisher();
    let undeclared = before.json(&1).unwrap().to_queue("work").await;
    assert!(matches!(undeclared, Err(PublishError::Unroutable(_))));
    guard.declare().await.unwrap();
    before.json(&1).unwrap().message_id("m-1").to_queue("work").await.unwrap();
    let running = guard.start().await.unwrap();
    running.publisher().json(&1).unwrap().message_id("m-2").to_queue("work").await.unwrap();
    before.clone().json(&1).unwrap().message_id("m-3").to_queue("work").await.unwrap();
    scene.until("all are done", |book| book.count("processed") == 3).await;
    running.shutdown().await.unwrap();
    before.json(&1).unwrap().message_id("m-4").to_queue("work").await.unwrap();
    assert_eq!(scene.queues.depth("work"), 1);
}

#[derive(Serialize)]
struct Odd {
    by_pair: HashMap<(u8, u8), u8>,
}

#[tokio::test]
async fn what_is_not_json_is_told_before_anything_is_sent() {
    let publisher = Guard::embedded().publisher();
    let odd = Odd { by_pair: HashMap::from([((1, 2), 3)]) };
    let error = publisher.json(&odd).unwrap_err();
    assert!(
        error.to_string().contains("cannot be written as JSON") && error.to_string().contains("key must be a string"),
        "{error}"
    );
    assert!(publisher.json(&f64::NAN).is_ok(), "serde_json writes null");
}

/// A draft and its message show no body: it may hold personal data.
#[tokio::test]
async fn a_draft_shows_no_body() {
    let draft = Guard::embedded().publisher().json(&"user@example.test").unwrap().header("h", "user@example.test");
    let shown = format!("{draft:?}");
    assert!(!shown.contains("user@example.test") && shown.contains("19 bytes") && shown.contains("\"h\""), "{shown}");
}

/// Handlers publish too.
#[tokio::test(start_paused = true)]
async fn a_handler_can_publish() {
    #[consumer(queue = "relay", dlq = "dlq.relay")]
    async fn relay(n: u64, to: mqguard::State<mqguard::Publisher>) {
        tokio::time::sleep(ms(10)).await;
        to.json(&(n + 1)).unwrap().message_id(format!("from-{n}")).to_queue("work").await.unwrap();
    }
    let scene = Scene::smooth();
    let guard = scene.guard();
    let publisher = guard.publisher();
    let _running = guard.state(publisher.clone()).consumer::<relay>().consumer::<guarded>().start().await.unwrap();
    publisher.json(&41).unwrap().to_queue("relay").await.unwrap();
    scene.until("it arrived", |book| book.count_of("from-41", "processed") == 1).await;
}
