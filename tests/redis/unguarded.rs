//! `on_store_down = "run"` with a server that is killed, and one that is frozen.

use std::time::{Duration, Instant};

use mqguard::{Guard, Status, consumer};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::server::Server;

#[consumer(queue = "eager", dlq = "dlq.eager", idempotent(store = "redis", lease = "5s", on_store_down = "run"))]
async fn eager(_body: Value) {}

/// Everything that went on in a guard, by the names of the events.
fn told(guard: Guard) -> (Guard, mpsc::UnboundedReceiver<String>) {
    let (sender, events) = mpsc::unbounded_channel();
    let tell = move |event: &mqguard::Event<'_>| {
        let name = format!("{:?}", event.kind);
        let name = name.split([' ', '{', '(']).next().unwrap_or_default();
        sender.send(format!("{} {name}", event.message_id.unwrap_or_default())).ok();
    };
    (guard.observe(tell), events)
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn messages_run_while_the_server_is_away_and_are_guarded_when_it_is_back() {
    for freeze in [false, true] {
        let mut server = Server::start();
        let (guard, mut events) = told(Guard::embedded().store_url(&server.url()));
        let running = guard.consumer::<eager>().start().await.expect("it starts");
        let publisher = running.publisher();
        let publish =
            async |id: &str| publisher.json(&1).expect("a body").message_id(id).to_queue("eager").await.expect("it is there");

        publish("before").await;
        assert_eq!(events.recv().await.as_deref(), Some("before Processed"));
        if freeze {
            server.signal("STOP")
        } else {
            server.stop()
        }
        let began = Instant::now();
        for n in 0..100 {
            publish(&format!("m-{n}")).await;
        }
        let mut seen = Vec::new();
        while seen.iter().filter(|event: &&String| event.ends_with("Processed")).count() < 100 {
            seen.push(events.recv().await.expect("an event"));
        }
        assert!(began.elapsed() < Duration::from_secs(4), "{freeze} {:?}", began.elapsed());
        assert_eq!(seen.iter().filter(|event| event.ends_with("Unguarded")).count(), 100, "{seen:?}");
        assert!(running.health().is_degraded(), "{:?}", running.health());

        if freeze {
            server.signal("CONT")
        } else {
            server.run()
        }
        let end = Instant::now() + Duration::from_secs(30);
        while running.health().consumers[0].1 != Status::Consuming {
            assert!(Instant::now() < end, "{:?}", running.health());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for _ in 0..2 {
            publish("after").await;
        }
        let mut last = [events.recv().await, events.recv().await].map(Option::unwrap_or_default);
        last.sort();
        assert_eq!(last[1], "after Processed");
        assert!(["after Duplicate", "after Busy"].contains(&&*last[0]), "{last:?}");
        running.shutdown().await.expect("it ends");
    }
}
