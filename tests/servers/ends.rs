//! How messages end: how often each runs, and what its letter tells.

use mqguard::{Context, Message, Reason, State, consumer};

use crate::script::{Job, Log, Step, Trouble};
use crate::support::{Database, Rig, Vhost, publish, records};

#[consumer(
    queue = "ends.quorum",
    retry(max = 2, delay = "50ms", factor = 2),
    dlq = "dlq.ends.quorum",
    idempotent = "redis",
    timeout = "300ms"
)]
async fn on_quorum(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

#[consumer(
    queue = "ends.classic",
    retry(max = 2, delay = "50ms", factor = 2),
    dlq = "dlq.ends.classic",
    idempotent = "redis",
    timeout = "300ms",
    queue_type = "classic"
)]
async fn on_classic(job: Job, log: State<Log>, cx: Context) -> Result<(), Trouble> {
    job.carry_out(&log, &cx).await
}

/// Name, steps, and of the letter: reason, runs, kind of the error, its text.
type Case = (&'static str, &'static [Step], Reason, u32, &'static str, &'static str);

const CASES: [Case; 5] = [
    ("business", &[Step::FailForGood], Reason::Fatal, 1, "servers::script::Trouble", "no such order"),
    ("passing", &[Step::Fail], Reason::Exhausted, 3, "servers::script::Trouble", "db-3 is away"),
    ("panic", &[Step::Panic], Reason::Exhausted, 3, "panic", "boom"),
    ("timeout", &[Step::Take(60_000)], Reason::Exhausted, 3, "timeout", "the handler did not end within 300ms"),
    ("turns", &[Step::Fail, Step::FailForGood], Reason::Fatal, 2, "servers::script::Trouble", "no such order"),
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn every_failure_ends_in_a_letter_that_tells_why() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let store = database.url();
    let rig = Rig::start(&vhost, |guard| guard.store_url(&store).consumer::<on_quorum>().consumer::<on_classic>()).await;
    for queue in ["ends.quorum", "ends.classic"] {
        let name = |case: &str| format!("{queue}-{case}");
        for (case, steps, ..) in CASES {
            rig.publish(queue, &name(case), steps).await;
        }
        rig.publish(queue, &name("fine"), &[Step::Fail, Step::Panic, Step::Succeed]).await;
        let publisher = vhost.broker();
        let plain = |body: &str, id: Option<&str>| {
            let mut message = Message { body: body.as_bytes().to_vec().into(), ..Message::default() };
            message.properties.message_id = id.map(str::to_owned);
            message
        };
        publish(&publisher, queue, &plain("{\"name\": 7}", Some(&name("undecodable")))).await;
        publish(&publisher, queue, &plain("{\"name\": \"no id\", \"steps\": []}", None)).await;

        let mut letters = vhost.letters(&format!("dlq.{queue}"), CASES.len() + 2).await;
        rig.ended(&[&name("fine")]).await;
        assert_eq!(rig.log.runs_of(&name("fine")).len(), 3);
        let mut letter_of = |id: Option<&str>| {
            let at = letters.iter().position(|letter| letter.message_id() == id).unwrap_or_else(|| panic!("no letter of {id:?}"));
            letters.remove(at)
        };
        for (case, _, reason, runs, kind, text) in CASES {
            let letter = letter_of(Some(&name(case)));
            let error = letter.error().unwrap();
            assert_eq!((letter.reason(), letter.runs()), (reason, runs), "{queue}: {case}");
            assert_eq!((error.kind.as_str(), error.message.as_str()), (kind, text), "{queue}: {case}");
            assert_eq!(rig.log.runs_of(&name(case)).len(), runs as usize, "{queue}: {case}");
            let attempts = letter.attempts();
            assert_eq!(attempts.iter().map(|attempt| attempt.attempt).collect::<Vec<_>>(), (1..=runs).collect::<Vec<_>>());
            assert!(attempts.is_sorted_by_key(|attempt| attempt.at), "{queue}: {case}: {attempts:?}");
            assert_eq!(attempts.last().unwrap().error, text);
            let job: &serde_json::Value = letter.payload().unwrap();
            assert_eq!(job["name"], name(case));
        }
        let undecodable = letter_of(Some(&name("undecodable")));
        assert_eq!((undecodable.reason(), undecodable.runs()), (Reason::Undecodable, 0));
        assert!(undecodable.error().unwrap().message.contains("at `name`"), "{undecodable:?}");
        assert_eq!(undecodable.body().as_ref(), b"{\"name\": 7}");
        let nameless = letter_of(None);
        assert_eq!((nameless.reason(), nameless.runs()), (Reason::MissingId, 0));
    }
    rig.shutdown().await;
    let records = records(&mut database.client());
    let ends: Vec<(&str, &str)> =
        records.values().map(|record| (record["state"].as_str(), record.get("letter").map_or("", String::as_str))).collect();
    assert_eq!(ends.iter().filter(|end| **end == ("success", "")).count(), 2, "{records:?}");
    assert_eq!(ends.iter().filter(|end| **end == ("failed", "out")).count(), 2 * (CASES.len() + 1), "{records:?}");
    assert_eq!(ends.len(), 2 + 2 * (CASES.len() + 1), "{records:?}");
    vhost.until_no_backlog(&[]);
}
