//! What makes two deliveries the same message.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;

use harness::{Logs, Scene, Trouble, guarded, identity, s};
use mqguard::idempotency::protocol::State as Stands;
use mqguard::{Consumer, Context, State, consumer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    order_id: String,
    amount: i64,
    customer: Customer,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Customer {
    id: u64,
    tax_number: Option<String>,
}

#[consumer(queue = "both", dlq = "dlq.orders", retry(max = 2, delay = "1s"), idempotent(store = "redis", key = "order_id"))]
async fn by_both(_order: Order, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

#[consumer(
    queue = "key",
    dlq = "dlq.orders",
    retry(max = 2, delay = "1s"),
    idempotent(store = "redis", key = "order_id", identity = "key")
)]
async fn by_key(_order: Order, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

#[consumer(queue = "id", dlq = "dlq.orders", retry(max = 2, delay = "1s"), idempotent(store = "redis", identity = "message_id"))]
async fn by_id(_order: Value, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

#[consumer(
    queue = "path",
    dlq = "dlq.orders",
    retry(max = 2, delay = "1s"),
    idempotent(store = "redis", key = "customer.id", identity = "key")
)]
async fn by_path(_order: Order, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

#[consumer(
    queue = "option",
    dlq = "dlq.orders",
    retry(max = 2, delay = "1s"),
    idempotent(store = "redis", key = "customer.tax_number", identity = "key")
)]
async fn by_option(_order: Order, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

#[consumer(queue = "function", dlq = "dlq.orders", retry(max = 2, delay = "1s"), idempotent(store = "redis", key = order_key, identity = "key"))]
async fn by_function(_order: Order, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

#[consumer(
    queue = "unprotected",
    dlq = "dlq.orders",
    retry(max = 2, delay = "1s"),
    idempotent(store = "redis", missing_id = "run")
)]
async fn unprotected(_order: Value, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
    scene.play(&cx).await
}

fn order_key(order: &Order) -> Option<String> {
    (order.amount > 0).then(|| format!("{}/{}", order.order_id, order.amount))
}

#[consumer(queue = "fanned.mail", dlq = "dlq.orders", bind(exchange = "orders", kind = "fanout"), idempotent = "redis")]
async fn mail(_order: Value, cx: Context, scene: State<Scene>) {
    scene.play(&cx).await.unwrap();
}

#[consumer(queue = "fanned.stock", dlq = "dlq.orders", bind(exchange = "orders", kind = "fanout"), idempotent = "redis")]
async fn stock(_order: Value, cx: Context, scene: State<Scene>) {
    scene.play(&cx).await.unwrap();
}

fn order(order_id: &str) -> Value {
    json!({ "order_id": order_id, "amount": 10, "customer": { "id": 7, "tax_number": null } })
}

/// Publishes these orders under these ids, one after the other, and says how many ran, were duplicates and became letters.
async fn outcome<C: Consumer>(messages: &[(&str, Value)]) -> [usize; 3] {
    let scene = Scene::smooth();
    let queue = C::SPEC.queue;
    let _running = scene.start::<C>().await;
    for (n, (id, body)) in messages.iter().enumerate() {
        scene.publish_body(queue, id, body).await;
        let settled = |book: &harness::Book| ENDS.map(|what| book.count(what)).iter().sum::<usize>();
        scene.until("it is settled", |book| settled(book) == n + 1).await;
    }
    scene.at_rest(queue).await;
    let book = scene.journal.book();
    assert_eq!(book.effects(), book.count("processed"));
    assert!(scene.deaths("dlq.orders").iter().all(|(_, reason)| reason == "missing-id"));
    assert_eq!(book.count("conflict"), 0);
    let [processed, duplicates, letters, _] = ENDS.map(|what| book.count(what));
    [processed, duplicates, letters]
}

const ENDS: [&str; 4] = ["processed", "duplicate", "dead-lettered", "conflict"];

#[tokio::test(start_paused = true)]
async fn key_and_message_id_both_count() {
    let messages = [("m-1", order("A")), ("m-2", order("A")), ("m-1", order("B")), ("m-1", order("A"))];
    assert_eq!(outcome::<by_both>(&messages).await, [3, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn either_of_key_and_message_id_is_enough() {
    let messages = [("", order("A")), ("m-1", order(" ")), ("", order("A")), ("m-1", order(" ")), ("  ", order(" "))];
    assert_eq!(outcome::<by_both>(&messages).await, [2, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn by_key_the_message_id_does_not_count() {
    let mut later = order("B");
    later["amount"] = json!(99);
    let messages = [("m-1", order("A")), ("m-2", order("A")), ("m-1", order("B")), ("", later), ("m-3", order(" "))];
    assert_eq!(outcome::<by_key>(&messages).await, [2, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn by_message_id_the_key_does_not_count() {
    let messages = [("m-1", order("A")), ("m-2", order("A")), ("m-1", order("A"))];
    assert_eq!(outcome::<by_id>(&messages).await, [2, 1, 0]);
}

/// A producer that uses an id twice has made a mistake, and somebody should know.
#[tokio::test(start_paused = true)]
async fn another_body_under_the_same_message_id_is_not_processed_but_told() {
    let logs = Logs::capture(tracing::Level::WARN);
    let scene = Scene::smooth();
    let _running = scene.guard().consumer::<by_id>().consumer::<by_both>().start().await.unwrap();
    let mut other = order("A");
    other["amount"] = json!(99);
    for queue in ["id", "both"] {
        for body in [order("A"), other.clone(), order("A")] {
            scene.publish_body(queue, "m-1", &body).await;
            scene.at_rest(queue).await;
        }
        let of_queue = |line: &String| line.contains(&format!("queue=\"{queue}\"")) && line.contains("message_id=\"m-1\"");
        assert_eq!(logs.with("with another body").into_iter().filter(of_queue).count(), 1, "{}", logs.text());
    }
    let book = scene.journal.book();
    assert_eq!(ENDS.map(|what| book.count(what)), [2, 2, 0, 2], "{book}");
}

#[tokio::test(start_paused = true)]
async fn a_key_can_be_inside_the_message() {
    let mut other = order("B");
    other["customer"]["id"] = json!(8);
    assert_eq!(outcome::<by_path>(&[("m-1", order("A")), ("m-2", order("B")), ("m-3", other)]).await, [2, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_none_is_missing() {
    let mut known = order("A");
    known["customer"]["tax_number"] = json!("DE 1");
    let messages = [("m-1", order("A")), ("m-2", known.clone()), ("m-3", known), ("m-4", order("B"))];
    assert_eq!(outcome::<by_option>(&messages).await, [1, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_key_can_be_computed() {
    let mut free = order("A");
    free["amount"] = json!(0);
    let messages = [("m-1", order("A")), ("m-2", order("A")), ("m-3", free)];
    assert_eq!(outcome::<by_function>(&messages).await, [1, 1, 1]);
}

/// No two messages without id are taken for the same one.
#[tokio::test(start_paused = true)]
async fn messages_without_id_are_letters_each() {
    let messages = [("", order("A")), ("", order("A")), ("   ", order("A")), ("\t", order("A")), ("m-1", order("A"))];
    assert_eq!(outcome::<by_id>(&messages).await, [1, 0, 4]);
}

#[tokio::test(start_paused = true)]
async fn messages_without_id_run_unprotected_when_told_so() {
    let messages = [("", order("A")), ("", order("A")), ("   ", order("A")), ("m-1", order("A")), ("m-1", order("A"))];
    assert_eq!(outcome::<unprotected>(&messages).await, [4, 1, 0]);
}

/// A message that has no id at all, not even an empty one.
#[tokio::test(start_paused = true)]
async fn the_letter_of_a_message_without_id_says_what_to_do() {
    let scene = Scene::smooth();
    let _running = scene.start::<guarded>().await;
    let draft = scene.publisher().json(&order("A")).unwrap().with(|message| message.properties.message_id = None);
    draft.to_queue("work").await.unwrap();
    scene.until("it is a letter", |book| book.count("dead-lettered") == 1).await;
    let letter = scene.letters("dlq.work").remove(0);
    let error = letter.error().unwrap();
    assert_eq!((letter.reason().to_string(), letter.runs(), letter.message_id()), ("missing-id".to_owned(), 0, None));
    assert!(error.message.contains("publish with a message id") && error.message.contains("missing_id = \"run\""), "{error}");
    assert!(scene.store.records().is_empty());
}

/// What runs unprotected is still retried and dead-lettered.
#[tokio::test(start_paused = true)]
async fn what_runs_unprotected_fails_as_ever() {
    let scene = Scene::failing(9);
    let _running = scene.start::<unprotected>().await;
    scene.publish("unprotected", "").await;
    scene.until("it is a letter", |book| book.count("dead-lettered") == 1).await;
    assert_eq!(scene.journal.book().began(""), [s(0), s(1), s(2)]);
    assert_eq!(scene.deaths("dlq.orders"), [(String::new(), "exhausted".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn ids_are_compared_byte_by_byte() {
    let long = "x".repeat(255);
    let other = format!("{}y", "x".repeat(254));
    let ids = ["a", "A", "a ", " a", "á", "a\u{301}", "ａ", "0", "00", "null", "a:b", "a/b", "💡", long.as_str(), other.as_str()];
    let once: Vec<(&str, Value)> = ids.iter().map(|id| (*id, order("A"))).collect();
    let twice: Vec<(&str, Value)> = once.iter().chain(&once).cloned().collect();
    assert_eq!(outcome::<by_id>(&twice).await, [ids.len(), ids.len(), 0]);
}

/// Keys come from bodies and can be longer than any property.
#[tokio::test(start_paused = true)]
async fn long_keys_are_told_apart_at_their_ends() {
    let key = |end: &str| order(&format!("{}{end}", "é".repeat(150)));
    let messages = [("", key("1")), ("", key("2")), ("", key("1"))];
    assert_eq!(outcome::<by_both>(&messages).await, [2, 1, 0]);
}

/// Key and id are told apart: `1` + `23` is not `12` + `3`, nor is a key an id.
#[tokio::test(start_paused = true)]
async fn key_and_id_do_not_run_together() {
    let messages = [("23", order("1")), ("3", order("12")), ("", order("123")), ("123", order(" ")), ("123", order("123"))];
    assert_eq!(outcome::<by_both>(&messages).await, [5, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn each_queue_of_a_fanout_has_its_own_records() {
    let scene = Scene::smooth();
    let _running = scene.guard().consumer::<mail>().consumer::<stock>().start().await.unwrap();
    for _ in 0..2 {
        let draft = scene.publisher().json(&order("A")).unwrap().message_id("m-1");
        draft.to_exchange("orders", "").await.unwrap();
    }
    scene.until("all are settled", |book| book.count("processed") + book.count("duplicate") == 4).await;
    let book = scene.journal.book();
    for queue in ["fanned.mail", "fanned.stock"] {
        let of = |what| book.events.iter().filter(|event| event.queue == queue && event.what == what).count();
        assert_eq!((of("processed"), of("duplicate")), (1, 1), "{queue}\n{book}");
    }
}

/// A handler may change its copy of the message: the record is found by the key that the message came with.
#[tokio::test(start_paused = true)]
async fn a_handler_may_change_its_message() {
    #[consumer(
        queue = "changed",
        dlq = "dlq.orders",
        retry(max = 2, delay = "1s"),
        idempotent(store = "redis", key = "order_id")
    )]
    async fn change(mut order: Order, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
        order.order_id = "X".into();
        order.customer.id = 0;
        scene.play(&cx).await
    }
    let scene = Scene::failing(1);
    let _running = scene.start::<change>().await;
    scene.publish_body("changed", "m-1", &order("A")).await;
    scene.until("it is done", |book| book.count("processed") == 1).await;
    let state = |key| scene.store.records().record(&identity("changed", key, "m-1")).map(|record| record.state);
    assert_eq!((state("A"), state("X"), scene.store.records().len()), (Some(Stands::Success), None, 1));
    scene.publish_body("changed", "m-1", &order("A")).await;
    scene.until("its duplicate is one", |book| book.count("duplicate") == 1).await;
}

/// A key function that panics over a body would do so again: the message is a dead letter at once.
#[tokio::test(start_paused = true)]
async fn a_key_that_panics_makes_a_letter_at_once() {
    fn first_item(order: &Value) -> String {
        order["items"].as_array().unwrap()[0].to_string()
    }
    #[consumer(queue = "items", dlq = "dlq.orders", retry(max = 2, delay = "1s"), idempotent(store = "redis", key = first_item))]
    async fn items(_order: Value, cx: Context, scene: State<Scene>) -> Result<(), Trouble> {
        scene.play(&cx).await
    }
    let scene = Scene::smooth();
    let _running = scene.start::<items>().await;
    scene.publish_body("items", "m-1", &json!({ "items": [] })).await;
    scene.publish_body("items", "m-2", &json!({ "items": ["book"] })).await;
    scene.until("the good one ran", |book| book.count_of("m-2", "processed") == 1).await;
    scene.until("the bad one is a letter", |book| book.count_of("m-1", "dead-lettered") == 1).await;
    let letter = scene.letters("dlq.orders").remove(0);
    assert_eq!((letter.reason().to_string(), letter.attempts().len()), ("undecodable".to_owned(), 0));
    assert_eq!(letter.error().unwrap().kind, "panic");
    assert_eq!(scene.journal.now(), s(0));
}
