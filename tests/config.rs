//! Mistakes in a guard's configuration: all are told at once, before anything is connected, each with the cure.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and a process that they watch")]

mod harness;
#[path = "config/modes.rs"]
mod modes;

use harness::{Process, Scene, bare, guarded, is_child};
use mqguard::__private::{Consumer, Context, DeadLetterSpec, Failure};
use mqguard::{ConsumerSpec, DeadLetter, Error, Guard, MemoryBroker, MemoryStore, State, consumer, dead_letter_consumer};
use serde_json::Value;

struct Database;
struct Cache;

#[consumer(queue = "stateful", dlq = "dlq.stateful")]
async fn stateful(_body: Value, _database: State<Database>) {}

#[consumer(queue = "stateful.too", dlq = "dlq.stateful")]
async fn very_stateful(_body: Value, _cache: State<Cache>, _database: State<Database>) {}

#[consumer(queue = "work", dlq = "dlq.work")]
async fn intruder(_body: Value) {}

#[dead_letter_consumer(queue = "dlq.of.nobody", of = guarded)]
async fn misled(_letter: DeadLetter<Value>) {}

#[dead_letter_consumer(queue = "dlq.work", of = guarded)]
async fn letters(_letter: DeadLetter<Value>) {}

#[consumer(queue = "in.memory", dlq = "dlq.in.memory", idempotent = "memory")]
async fn in_memory(_body: Value) {}

/// Written by hand: the attribute does not allow it.
enum Circular {}

impl Consumer for Circular {
    const SPEC: ConsumerSpec = ConsumerSpec {
        dead_letters: Some(DeadLetterSpec { queue: "circle", exchange: "dlx.exchange" }),
        ..ConsumerSpec::new("circular", "config", "circle")
    };
    type Message = Value;
    type Output = ();

    async fn run(_message: Value, _cx: Context) -> Result<(), Failure> {
        Ok(())
    }
}

/// What a guard says that cannot start; one line for each mistake.
async fn mistakes(guard: Guard) -> Vec<String> {
    let declared = guard.declare().await.err().map(|error| error.to_string()).unwrap_or_default();
    let error = guard.start().await.unwrap_err();
    assert!(matches!(error, Error::Config(_)), "{error:?}");
    let said = error.to_string();
    // To declare queues, neither what is in stores nor what handlers need has to be there.
    let of_running = ["is not configured", "has no state machine", "was registered"];
    let to_declare: Vec<&str> = said.lines().filter(|mistake| !of_running.iter().any(|part| mistake.contains(part))).collect();
    assert_eq!(declared.lines().collect::<Vec<_>>(), to_declare);
    said.lines().map(str::to_owned).collect()
}

#[track_caller]
fn says(mistakes: &[String], parts: &[&str]) {
    let told = mistakes.iter().any(|mistake| parts.iter().all(|part| mistake.contains(part)));
    assert!(told, "no line says {parts:?}:\n{}", mistakes.join("\n"));
}

/// A broker that is not the embedded one.
fn server() -> harness::FaultyBroker {
    let broker = harness::FaultyBroker::over(MemoryBroker::new());
    broker.pass_for_embedded(false);
    broker
}

#[tokio::test(start_paused = true)]
async fn a_guard_without_consumers() {
    let said = mistakes(Guard::embedded()).await;
    assert_eq!(said.len(), 1);
    says(&said, &["no consumer is registered", ".consumer::<"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_not_configured() {
    let scene = Scene::smooth();
    let said = mistakes(Guard::with_broker(server()).state(scene).consumer::<guarded>()).await;
    assert_eq!(said.len(), 1, "{said:?}");
    says(&said, &["consumer `guarded` (queue `work`)", "store `redis`", "MQGUARD_REDIS", ".store_url("]);
}

#[tokio::test(start_paused = true)]
async fn on_the_embedded_broker_the_memory_store_stands_in() {
    let scene = Scene::smooth();
    let running = Guard::embedded().state(scene.clone()).consumer::<guarded>().start().await.unwrap();
    for _ in 0..2 {
        running.publisher().json(&1).unwrap().message_id("m-1").to_queue("work").await.unwrap();
    }
    tokio::time::sleep(harness::s(10)).await;
    assert_eq!(scene.journal.book().runs.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_memory_store_needs_no_configuration_but_a_warning_on_a_server() {
    let logs = harness::Logs::capture(tracing::Level::INFO);
    let running = Guard::with_broker(server()).consumer::<in_memory>().start().await.unwrap();
    assert!(running.health().is_healthy());
    assert_eq!(logs.with("duplicates that reach other processes").len(), 1, "{}", logs.text());
}

#[tokio::test(start_paused = true)]
async fn two_consumers_on_one_queue() {
    let guard = Guard::embedded().state(Scene::smooth()).consumer::<guarded>().consumer::<intruder>();
    let said = mistakes(guard).await;
    assert_eq!(said.len(), 1, "{said:?}");
    says(&said, &["`guarded` and `intruder`", "the same queue `work`"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_consumer_twice() {
    let guard = Guard::embedded().state(Scene::smooth()).consumer::<guarded>().consumer::<bare>().consumer::<guarded>();
    let said = mistakes(guard).await;
    assert_eq!(said.len(), 1, "{said:?}");
    says(&said, &["`guarded`", "2 times"]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_queue_that_is_the_queue_itself() {
    let said = mistakes(Guard::embedded().consumer::<Circular>()).await;
    assert_eq!(said.len(), 1, "{said:?}");
    says(&said, &["consumer `circular` (queue `circle`)", "dead-letter queue"]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_consumer_on_another_queue() {
    let said = mistakes(Guard::embedded().consumer::<misled>()).await;
    assert_eq!(said.len(), 1, "{said:?}");
    says(&said, &["consumer `misled` (queue `dlq.of.nobody`)", "`guarded`", "queue = \"dlq.work\""]);
    let running = Guard::embedded().consumer::<letters>().start().await.unwrap();
    assert!(running.health().is_healthy());
}

#[tokio::test(start_paused = true)]
async fn state_that_is_missing_or_given_twice() {
    let guard = Guard::embedded().consumer::<stateful>().consumer::<very_stateful>().state(1u8).state(2u8);
    let said = mistakes(guard).await;
    assert_eq!(said.len(), 4, "{said:?}");
    says(&said, &["consumer `stateful` (queue `stateful`)", "config::Database", ".state("]);
    says(&said, &["consumer `very_stateful` (queue `stateful.too`)", "config::Cache"]);
    says(&said, &["consumer `very_stateful` (queue `stateful.too`)", "config::Database"]);
    says(&said, &["two values of the type `u8`"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_given_twice() {
    let guard = Guard::embedded().store("redis", MemoryStore::new()).store("redis", MemoryStore::new());
    let said = mistakes(guard.consumer::<in_memory>()).await;
    assert_eq!(said, ["the store `redis` is given twice; it may be in the environment too, as MQGUARD_REDIS"]);
}

#[tokio::test(start_paused = true)]
async fn everything_at_once() {
    let guard = Guard::with_broker(server())
        .store_url("redis-typo://user:S3cret@cache:6379")
        .state(1u8)
        .state(1u8)
        .consumer::<guarded>()
        .consumer::<intruder>()
        .consumer::<stateful>()
        .consumer::<misled>()
        .consumer::<Circular>();
    let said = mistakes(guard).await;
    says(&said, &["`redis-typo:`"]);
    says(&said, &["`u8`"]);
    says(&said, &["`guarded` and `intruder`"]);
    says(&said, &["consumer `guarded`", "store `redis` is not configured"]);
    says(&said, &["consumer `guarded`", "Scene"]);
    says(&said, &["consumer `stateful`", "Database"]);
    says(&said, &["consumer `misled`"]);
    says(&said, &["consumer `circular`"]);
    assert_eq!(said.len(), 8, "{said:?}");
    assert!(!said.concat().contains("S3cret"));
}

/// Nothing is connected, declared or consumed when something is wrong.
#[tokio::test(start_paused = true)]
async fn a_guard_with_a_mistake_does_nothing() {
    let scene = Scene::smooth();
    assert!(scene.guard().consumer::<guarded>().consumer::<stateful>().start().await.is_err());
    assert!(scene.queues.queues().is_empty() && scene.broker.subscriptions() == 0);
}

/// A broker URL, and what is said about it.
#[test]
fn broker_urls() {
    let cases = [
        ("", "has no scheme"),
        ("   ", "has no scheme"),
        ("localhost", "has no scheme"),
        ("localhost:5672", "`localhost:`"),
        ("://host", "has no scheme"),
        ("http://host", "`http:`"),
        ("kafka://user:S3cret@host", "`kafka:`"),
        ("amqp//user:S3cret@host:5672", "has no scheme"),
        ("S3cret@host:5672", "has no scheme"),
        ("//user:S3cret@host", "has no scheme"),
        ("user:S3cret@host:5672", "`user:`"),
    ];
    for (url, expected) in cases {
        let said = Guard::connect(url).unwrap_err().to_string();
        assert!(said.contains(expected) && said.contains("write `memory://`"), "`{url}`: {said}");
        assert!(!said.contains("S3cret"), "`{url}`: {said}");
    }
    for url in ["memory://", "memory:", "memory://localhost/ignored", "MEMORY://"] {
        assert!(Guard::connect(url).is_ok(), "{url}");
    }
}

#[test]
fn a_missing_feature_is_named() {
    let cases = [
        ("amqp://user:S3cret@host:5672/%2f", "rabbitmq", cfg!(feature = "rabbitmq")),
        ("amqps://user:S3cret@host", "tls", cfg!(feature = "tls")),
    ];
    for (url, feature, is_there) in cases {
        match Guard::connect(url) {
            Ok(_) => assert!(is_there, "{url}"),
            Err(error) => {
                let said = error.to_string();
                let named = ["rabbitmq", feature].iter().any(|feature| said.contains(&format!("feature `{feature}`")));
                assert!(!is_there && named && !said.contains("S3cret"), "{said}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn store_urls() {
    let cases = [
        ("", "has no scheme"),
        ("S3cret@host:6379", "has no scheme"),
        ("mongodb://user:S3cret@host/db", "`mongodb:`"),
        ("mem://", "`mem:`"),
    ];
    for (url, expected) in cases {
        let said = mistakes(Guard::embedded().consumer::<in_memory>().store_url(url)).await.join("\n");
        assert!(said.contains(expected) && said.contains("redis://") && !said.contains("S3cret"), "`{url}`: {said}");
    }
    if cfg!(not(feature = "redis")) {
        let said = mistakes(Guard::embedded().consumer::<in_memory>().store_url("redis://:S3cret@host")).await.join("\n");
        assert!(said.contains("feature `redis`") && !said.contains("S3cret"), "{said}");
    }
    assert!(Guard::embedded().consumer::<in_memory>().store_url("memory://").start().await.is_ok());
}

#[test]
#[ignore = "a process of its own, for the tests below"]
fn process_with_an_environment() {
    if !is_child() {
        return;
    }
    match Guard::from_env() {
        Ok(guard) => println!("{guard:?}"),
        Err(error) => error.to_string().lines().for_each(|line| println!("{line}")),
    }
    println!("end");
}

/// What `from_env` says in an environment with these variables.
fn in_environment(variables: &[(&str, &str)]) -> String {
    let mut process = Process::start("process_with_an_environment", variables);
    process.until("end");
    assert!(process.end().0.success());
    process.said.join("\n")
}

#[test]
fn the_environment_names_broker_and_store() {
    for nothing in [&[][..], &[("MQGUARD_BROKER", ""), ("MQGUARD_REDIS", " ")], &[("MQGUARD_BROKER", "memory://")]] {
        let said = in_environment(nothing);
        assert!(said.contains("Guard {") && said.contains("MemoryBroker"), "{said}");
    }
    let said = in_environment(&[("MQGUARD_BROKER", "kafka://user:S3cret@host"), ("MQGUARD_REDIS", "S3cret@cache:6379")]);
    assert!(said.contains("MQGUARD_BROKER: there is no broker for `kafka:` URLs"), "{said}");
    assert!(said.contains("MQGUARD_REDIS: the store URL has no scheme"), "both are told at once: {said}");
    assert!(!said.contains("S3cret"), "{said}");
}

#[cfg(all(feature = "redis", feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[test]
fn each_kind_of_store_has_its_variable() {
    let urls = [
        ("MQGUARD_REDIS", "memory://"),
        ("MQGUARD_MYSQL", "mysql://user:S3cret@host/shop"),
        ("MQGUARD_POSTGRES", "postgres://user:S3cret@host/shop"),
        ("MQGUARD_SQLITE", "sqlite:/tmp/records.db"),
    ];
    let said = in_environment(&urls);
    assert!(said.contains("Guard {") && !said.contains("S3cret"), "{said}");
    let said = in_environment(&[("MQGUARD_REDIS", "postgres://user:S3cret@host/shop"), ("MQGUARD_SQLITE", "redis://host")]);
    assert!(said.contains("MQGUARD_REDIS: this is the URL of a `postgres` store: put it into MQGUARD_POSTGRES"), "{said}");
    assert!(said.contains("MQGUARD_SQLITE: this is the URL of a `redis` store: put it into MQGUARD_REDIS"), "{said}");
    assert!(!said.contains("S3cret"), "{said}");
}

/// A broker that cannot be read must not become the embedded one, which forgets everything.
#[cfg(unix)]
#[test]
fn a_variable_that_is_not_text_is_a_mistake() {
    use std::os::unix::ffi::OsStrExt;
    let broken = std::ffi::OsStr::from_bytes(b"amqp://\xff");
    let mut process = Process::start_with("process_with_an_environment", [("MQGUARD_BROKER", broken)]);
    process.until("end");
    let said = process.said.join("\n");
    assert!(said.contains("MQGUARD_BROKER") && said.contains("not UTF-8"), "{said}");
}
