//! What operators read in the log and observers are told: each thing once, and nothing of a message's body.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod harness;

use harness::{Logs, Scene, Trouble, bare, guarded, s};
use mqguard::{Context, RetryableError, State, consumer};
use serde::Deserialize;
use serde_json::json;
use tracing::Level;

#[derive(Debug, thiserror::Error, RetryableError)]
enum Outer {
    #[error("order cannot be charged")]
    #[retryable]
    Charge(#[source] Inner),
    #[error("{0}")]
    #[fatal]
    Long(String),
}

#[derive(Debug, thiserror::Error)]
#[error("payment does not answer")]
struct Inner(#[source] std::io::Error);

#[derive(Deserialize)]
#[allow(dead_code, reason = "only read")]
struct Person {
    email: String,
    age: u8,
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Customer,
}

#[consumer(
    queue = "person",
    retry(max = 3, delay = "5s", factor = 2),
    dlq = "dlq.person",
    idempotent(store = "redis", key = "email")
)]
async fn person(person: Person, cx: Context, scene: State<Scene>) -> Result<(), Outer> {
    scene.play(&cx).await.unwrap();
    match person.age {
        0 => Err(Outer::Charge(Inner(std::io::Error::other("connection refused")))),
        1 => Err(Outer::Long("x".repeat(100_000))),
        2 => std::panic::panic_any("age"),
        _ => Ok(()),
    }
}

const SECRET: &str = "user@example.test";

fn body(age: u8) -> serde_json::Value {
    json!({ "email": SECRET, "age": age, "kind": "customer" })
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_given_up_is_one_warning() {
    let logs = Logs::capture(Level::INFO);
    let scene = Scene::smooth();
    let _running = scene.start::<person>().await;
    scene.publish_body("person", "m-1", &body(0)).await;
    scene.until("it is a letter", |book| book.count("dead-lettered") == 1).await;
    let (warnings, retries) = (logs.with(" WARN "), logs.with("retry "));
    assert_eq!(warnings.len(), 1, "{}", logs.text());
    for part in [
        "queue=\"person\"",
        "message_id=\"m-1\"",
        "reason=exhausted",
        "runs=4",
        "dlq.person",
        "order cannot be charged: payment does not answer: connection refused",
    ] {
        assert!(warnings[0].contains(part), "{part} is not in {}", warnings[0]);
    }
    assert_eq!(retries.len(), 3, "{}", logs.text());
    for (line, part) in retries.iter().zip(["retry 1 of 3 in 5s", "retry 2 of 3 in 10s", "retry 3 of 3 in 20s"]) {
        assert!(
            line.contains(part) && line.contains("INFO") && line.contains("m-1") && line.contains("connection refused"),
            "{line}"
        );
    }
    assert!(logs.with("ERROR").is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_line_is_longer_than_four_kilobytes() {
    let logs = Logs::capture(Level::TRACE);
    let scene = Scene::smooth();
    let _running = scene.start::<person>().await;
    scene.publish_body("person", "m-1", &body(1)).await;
    scene.until("it is a letter", |book| book.count("dead-lettered") == 1).await;
    let longest = logs.text().lines().map(str::len).max().unwrap();
    assert!(longest < 4096, "{longest} bytes");
    assert!(scene.letters("dlq.person")[0].error().unwrap().message.len() > 2048, "the letter tells more");
}

#[tokio::test(start_paused = true)]
async fn bodies_are_in_no_line_and_no_record() {
    let logs = Logs::capture(Level::TRACE);
    let scene = Scene::smooth();
    let running = scene.start::<person>().await;
    let bodies = [
        body(0),
        body(2),
        body(3),
        json!({ "email": "a", "age": SECRET, "kind": "customer" }),
        json!({ "email": "a", "age": 3, "kind": SECRET }),
        json!({ "email": "a", "age": 3, "kind": { SECRET: 1 } }),
        json!({ "email": "a", "age": 123_456_789, "kind": "customer" }),
        json!(SECRET),
        json!([SECRET]),
    ];
    for (n, body) in bodies.iter().enumerate() {
        scene.publish_body("person", &format!("m-{n}"), body).await;
    }
    for broken in [format!("{{ \"email\": \"{SECRET}"), format!("{SECRET} is not JSON")] {
        scene.publisher().bytes(broken).to_queue("person").await.unwrap();
    }
    let ended = |book: &harness::Book| book.count("processed") + book.count("dead-lettered");
    scene.until("all ended", |book| ended(book) == bodies.len() + 2).await;
    running.shutdown().await.unwrap();
    for secret in [SECRET, "123456789"] {
        assert!(logs.with(secret).is_empty(), "{:#?}", logs.with(secret));
    }
    for letter in scene.letters("dlq.person") {
        let error = letter.error().unwrap().to_string();
        assert!(!error.contains(SECRET) && !error.contains("123456789"), "{error}");
    }
}

/// What is left of the text says where and what.
#[tokio::test(start_paused = true)]
async fn a_body_that_cannot_be_read_is_described_without_its_values() {
    let scene = Scene::smooth();
    let _running = scene.start::<person>().await;
    let cases = [
        (json!({ "email": "a", "age": SECRET, "kind": "customer" }), "at `age`: invalid type: string, expected u8"),
        (json!({ "email": "a", "age": 300, "kind": "customer" }), "at `age`: invalid value: integer, expected u8"),
        (json!({ "email": "a", "age": true, "kind": "customer" }), "at `age`: invalid type: boolean, expected u8"),
        (json!({ "email": "a", "age": 1.5, "kind": "customer" }), "at `age`: invalid type: floating point, expected u8"),
        (json!({ "email": "a", "age": 3, "kind": "a, expected b" }), "at `kind`: unknown variant, expected `customer`"),
        (json!({ "email": ["a"], "age": 3, "kind": "customer" }), "at `email`: invalid type: sequence, expected a string"),
        (json!({ "email": "a", "kind": "customer" }), "missing field `age`"),
    ];
    for (n, (body, expected)) in cases.iter().enumerate() {
        scene.publish_body("person", &format!("m-{n}"), body).await;
        scene.until("it is a letter", |book| book.count("dead-lettered") == n + 1).await;
        let error = scene.letters("dlq.person")[n].error().unwrap().message;
        assert!(error.contains(expected), "{error}");
    }
}

/// Every end of a message is told to observers once, what never ran included.
#[tokio::test(start_paused = true)]
async fn observers_are_told_of_each_thing_once() {
    let scene = Scene::new(|run| async move { if run.id == "bad" { Err(Trouble::Passing) } else { Ok(()) } });
    let _running = scene.guard().consumer::<guarded>().consumer::<bare>().start().await.unwrap();
    for queue in ["work", "bare"] {
        for id in ["bad", "good"] {
            scene.publish(queue, id).await;
        }
        scene.publisher().bytes("{oops").message_id("broken").to_queue(queue).await.unwrap();
    }
    scene.publish("work", "good").await;
    scene.until("all ended", |book| book.count("dead-lettered") == 4).await;
    tokio::time::sleep(s(60)).await;
    let book = scene.journal.book();
    let told = |id, what| book.count_of(id, what);
    assert_eq!(["retried", "dead-lettered", "processed"].map(|what| told("bad", what)), [6, 2, 0], "{book}");
    assert_eq!(["processed", "duplicate", "retried"].map(|what| told("good", what)), [2, 1, 0], "{book}");
    assert_eq!(["dead-lettered", "retried", "processed"].map(|what| told("broken", what)), [2, 0, 0], "{book}");
    let reasons: Vec<String> = book.events.iter().filter_map(|event| event.reason.as_ref().map(ToString::to_string)).collect();
    assert_eq!(reasons.iter().filter(|reason| *reason == "undecodable").count(), 2, "{reasons:?}");
    assert_eq!(book.events.len(), 13, "{book}");
}
