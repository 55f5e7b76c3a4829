//! Bodies: what a consumer can read, and what becomes of those that it cannot.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod support;

use mqguard::{Context, DeadLetter, Raw, Reason, State, consumer};
use serde::Deserialize;
use serde_json::Value;
use support::{Log, Rig, What};

type Logged = State<Log>;

#[derive(Debug, Deserialize)]
struct Order {
    order_id: String,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Debug, Deserialize)]
struct Item {
    price: u32,
}

#[consumer(queue = "orders", retry(max = 3, delay = "5s"), dlq = "dlq.orders")]
async fn orders(order: Order, log: Logged, cx: Context) {
    let total: u32 = order.items.iter().map(|item| item.price).sum();
    log.ran(&format!("{} {total}", order.order_id), &cx);
}

/// The letter that this body becomes, within no time and without a run, while other messages are processed.
async fn undecodable(body: impl Into<Vec<u8>>) -> (DeadLetter<Value>, String) {
    let body = body.into();
    let rig = Rig::start(|guard| guard.consumer::<orders>()).await;
    rig.publish_raw("orders", "bad", body.clone()).await;
    rig.publish_raw("orders", "good", r#"{"order_id":"A-1","items":[{"price":7},{"price":5}]}"#).await;
    let letter = rig.letter_of("bad", "dlq.orders").await;
    rig.log.until(|log| log.ended("good")).await;
    assert_eq!(rig.log.end_of("bad"), Some(std::time::Duration::ZERO));
    assert_eq!(rig.log.seen_of("good"), [What::Processed]);
    rig.let_an_hour_pass().await;
    let runs: Vec<_> = rig.log.runs().into_iter().map(|run| run.name).collect();
    assert_eq!(runs, ["A-1 12"]);
    rig.assert_empty_but(&[("dlq.orders", 1)]);

    assert_eq!(letter.reason(), Reason::Undecodable);
    assert_eq!(letter.runs(), 0);
    assert!(letter.attempts().is_empty());
    assert!(letter.body() == &body, "the body is as it came");
    assert!(letter.died().is_some());
    assert_eq!((letter.queue(), letter.consumer()), (Some("orders"), Some("payload::orders")));
    let error = letter.error().unwrap();
    assert_eq!((error.kind.as_str(), error.chain.len()), ("undecodable", 0));
    (letter, error.message)
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_json_is_undecodable() {
    let (_, message) = undecodable(r#"{"order_id":"A-1}"#).await;
    assert_eq!(message, "at `order_id`: EOF while parsing a string at line 1 column 17");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_utf8_is_undecodable() {
    let (letter, message) = undecodable(b"{\"order_id\":\"\xff\xfe\"}".as_slice()).await;
    assert!(message.contains("invalid unicode code point"), "{message}");
    assert!(letter.payload().is_err());
    let (_, message) = undecodable(vec![0, 1, 2, 255]).await;
    assert!(message.contains("expected value at line 1 column 1"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn an_empty_body_is_undecodable() {
    let (_, message) = undecodable("").await;
    assert_eq!(message, "the body is empty, JSON was expected");
    let (_, message) = undecodable("  \n ").await;
    assert_eq!(message, "EOF while parsing a value at line 2 column 1");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_the_wrong_shape_is_undecodable_and_the_error_names_the_place() {
    let (letter, message) = undecodable(r#"{"order_id":"A","items":[{"price":1},{"price":2},{"price":"x"}]}"#).await;
    assert!(message.starts_with("at `items[2].price`: invalid type: string, expected u32"), "{message}");
    assert_eq!(letter.payload().unwrap()["items"][2]["price"], "x");
    let (_, message) = undecodable(r#"{"items":[]}"#).await;
    assert!(message.starts_with("missing field `order_id`"), "{message}");
    let (_, message) = undecodable("null").await;
    assert!(message.starts_with("invalid type: null, expected struct Order"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_body_with_something_behind_it_is_undecodable() {
    let (_, message) = undecodable(r#"{"order_id":"A"} {"order_id":"B"}"#).await;
    assert_eq!(message, "trailing characters at line 1 column 18");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_sixteen_megabytes_is_undecodable_like_any_other() {
    undecodable(vec![b'['; 16 << 20]).await;
    undecodable(vec![b'x'; 16 << 20]).await;
}

#[consumer(queue = "values", retry(max = 1, delay = "5s"), dlq = "dlq.values")]
async fn values(value: Value, log: Logged, cx: Context) {
    log.ran(&value["order_id"].to_string(), &cx);
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_is_undecodable() {
    let rig = Rig::start(|guard| guard.consumer::<values>().consumer::<orders>()).await;
    rig.publish_raw("values", "deep", "[".repeat(10_000)).await;
    let letter = rig.letter_of("deep", "dlq.values").await;
    assert_eq!((letter.reason(), letter.runs()), (Reason::Undecodable, 0));
    let message = letter.error().unwrap().message;
    assert!(message.contains("recursion limit exceeded"), "{message}");
    assert!(message.len() < 1000, "{} bytes", message.len());
    // In a field that nobody reads it does no harm.
    let nested = format!(r#"{{"order_id":"A","more":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    rig.publish_raw("orders", "ignored", nested).await;
    rig.log.until(|log| log.ended("ignored")).await;
    assert_eq!(rig.log.seen_of("ignored"), [What::Processed]);
}

#[tokio::test(start_paused = true)]
async fn a_body_of_sixteen_megabytes_is_processed() {
    let rig = Rig::start(|guard| guard.consumer::<orders>()).await;
    let id = "x".repeat(16 << 20);
    rig.publish_raw("orders", "big", format!(r#"{{"order_id":"{id}"}}"#)).await;
    rig.log.until(|log| log.ended("big")).await;
    assert_eq!(rig.log.runs()[0].name.len(), id.len() + 2);
}

#[tokio::test(start_paused = true)]
async fn the_content_type_decides_nothing() {
    let rig = Rig::start(|guard| guard.consumer::<orders>()).await;
    let types = [
        None,
        Some(""),
        Some("text/plain"),
        Some("application/json; charset=utf-8"),
        Some("application/vnd.shop.order+json"),
        Some("APPLICATION/JSON"),
        Some("application/xml"),
    ];
    for (n, content_type) in types.into_iter().enumerate() {
        let draft = rig.publisher.bytes(format!(r#"{{"order_id":"{n}"}}"#)).message_id(n.to_string());
        let typed = draft.with(|message| message.properties.content_type = content_type.map(str::to_owned));
        typed.to_queue("orders").await.unwrap();
        rig.log.until(|log| log.ended(&n.to_string())).await;
        assert_eq!(rig.log.runs_of(&format!("{n} 0")).len(), 1, "{content_type:?}");
        assert_eq!(rig.log.messages(&format!("{n} 0"))[0].properties.content_type.as_deref(), content_type);
    }
}

#[consumer(queue = "maybe")]
async fn maybe(order: Option<Order>, log: Logged, cx: Context) {
    log.ran(&order.map_or("none".to_owned(), |order| order.order_id), &cx);
}

#[consumer(queue = "signal")]
async fn signal(_signal: (), log: Logged, cx: Context) {
    log.ran("signal", &cx);
}

#[consumer(queue = "text")]
async fn text(text: String, log: Logged, cx: Context) {
    log.ran(&text, &cx);
}

#[tokio::test(start_paused = true)]
async fn an_empty_body_is_read_as_null() {
    let rig = Rig::start(|guard| guard.consumer::<maybe>().consumer::<signal>().consumer::<text>()).await;
    for queue in ["maybe", "signal", "text"] {
        for (what, body) in [("null", "null"), ("empty", ""), ("object", "{}")] {
            rig.publish_raw(queue, &format!("{queue} {what}"), body).await;
        }
    }
    rig.publish_raw("text", "text text", "\"hello\"").await;
    rig.log.until(|log| log.processed() + log.letters() == 10).await;
    let mut processed: Vec<_> =
        rig.log.seen().into_iter().filter(|seen| seen.what == What::Processed).map(|seen| seen.id.unwrap()).collect();
    processed.sort();
    assert_eq!(processed, ["maybe empty", "maybe null", "signal empty", "signal null", "text text"]);
    let mut names: Vec<_> = rig.log.runs().into_iter().map(|run| run.name).collect();
    names.sort();
    assert_eq!(names, ["hello", "none", "none", "signal", "signal"]);
}

#[consumer(queue = "raw", retry(max = 1, delay = "5s"), dlq = "dlq.raw")]
async fn raw(Raw(body): Raw, log: Logged, cx: Context) -> Result<(), std::io::Error> {
    log.ran(&body.len().to_string(), &cx);
    if body.is_empty() { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(()) }
}

#[tokio::test(start_paused = true)]
async fn a_raw_payload_takes_any_body() {
    let rig = Rig::start(|guard| guard.consumer::<raw>()).await;
    let bodies = [Vec::new(), vec![0, 255, 254], b"{ not json".to_vec(), vec![b'['; 10_000], vec![7; 16 << 20]];
    for body in &bodies {
        rig.publish_raw("raw", &body.len().to_string(), body.clone()).await;
    }
    rig.log.until(|log| bodies.iter().all(|body| log.ended(&body.len().to_string()))).await;
    for body in &bodies {
        let expected = if body.is_empty() { 2 } else { 1 };
        let messages = rig.log.messages(&body.len().to_string());
        assert_eq!(messages.len(), expected);
        assert!(messages.iter().all(|message| message.body == body), "a body of {} bytes", body.len());
    }
    rig.assert_empty_but(&[("dlq.raw", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_body_stays_the_same_through_retries_and_in_the_letter() {
    let rig = Rig::start(|guard| guard.consumer::<fussy>()).await;
    let body = " { \"order_id\" : \"\\u00e9\" ,\n\t\"more\": 1e400000 , \"order\": 0.10 } ";
    rig.publish_raw("fussy", "A", body).await;
    let letter = rig.letter_of("A", "dlq.fussy").await;
    assert_eq!(rig.log.messages("é").iter().map(|message| message.body.clone()).collect::<Vec<_>>(), [body, body, body]);
    assert_eq!(letter.body(), body);
}

#[consumer(queue = "fussy", retry(max = 2, delay = "1s"), dlq = "dlq.fussy")]
async fn fussy(order: Order, log: Logged, cx: Context) -> Result<(), std::io::Error> {
    log.ran(&order.order_id, &cx);
    Err(std::io::ErrorKind::TimedOut.into())
}
