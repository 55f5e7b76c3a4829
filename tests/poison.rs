//! A message that kills its process: in the end it is a dead letter, and none of those that were handled beside it is.

#![cfg(all(feature = "rabbitmq", feature = "redis", feature = "sqlite", unix))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]
#![allow(unreachable_pub, reason = "modules that are shared with other tests")]

#[allow(dead_code, reason = "for other tests")]
#[path = "harness/child.rs"]
mod child;
#[path = "orders/process.rs"]
mod process;
#[allow(dead_code, reason = "for other tests")]
#[path = "redis/server.rs"]
mod redis_server;
#[path = "support/mod.rs"]
mod script;
#[allow(dead_code, reason = "for other tests")]
#[path = "servers/support.rs"]
mod support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mqguard::{Guard, Reason, State, consumer};

use child::Process;
use support::{Database, Vhost, within};

/// Aborts the process in the midst of its run.
const POISON: u32 = 3;
const MESSAGES: u32 = 30;
/// Runs of a message that take a process down each before it is given up.
const DEATHS: usize = 4;

/// What the processes did, a line each: a message begins or is done.
#[derive(Debug, Clone)]
struct Diary(PathBuf);

impl Diary {
    fn write(&self, line: &str) {
        let mut file = std::fs::File::options().create(true).append(true).open(&self.0).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// How often each line was written.
    fn read(&self) -> BTreeMap<String, usize> {
        let mut lines = BTreeMap::new();
        for line in std::fs::read_to_string(&self.0).unwrap_or_default().lines() {
            *lines.entry(line.to_owned()).or_default() += 1;
        }
        lines
    }
}

async fn handle(queue: &str, message: u32, diary: &Diary) {
    diary.write(&format!("{queue} begins {message}"));
    // Others begin meanwhile.
    tokio::time::sleep(Duration::from_millis(30)).await;
    if message == POISON && !queue.contains("bystander") {
        std::process::abort();
    }
    tokio::time::sleep(Duration::from_millis(30)).await;
    diary.write(&format!("{queue} ends {message}"));
}

macro_rules! consumers {
    ($($function:ident $queue:literal ($($more:tt)*);)*) => {
        $(
            #[consumer(queue = $queue, retry(max = 1, delay = "200ms"), prefetch = 10, $($more)*)]
            async fn $function(message: u32, diary: State<Diary>) {
                handle($queue, message, &diary).await;
            }
        )*

        /// The guard of a case: its consumer, and one beside it that nothing is wrong with.
        fn guard(broker: &str, queue: &str, diary: &Path) -> Guard {
            let guard = Guard::connect(broker).unwrap().state(Diary(diary.into())).consumer::<bystander>();
            match queue {
                $($queue => guard.consumer::<$function>(),)*
                other => panic!("no case {other}"),
            }
        }
    };
}

consumers! {
    bare_quorum "poison.quorum" (dlq = "dlq.poison.quorum");
    bare_classic "poison.classic" (dlq = "dlq.poison.classic", queue_type = "classic");
    bare_one_by_one "poison.one" (dlq = "dlq.poison.one", concurrency = 1);
    with_redis "poison.redis" (dlq = "dlq.poison.redis", idempotent(store = "redis", lease = "1s"));
    with_sqlite "poison.sqlite" (dlq = "dlq.poison.sqlite", queue_type = "classic", idempotent(store = "sqlite", lease = "1s"));
}

#[consumer(queue = "poison.bystander", retry(max = 1, delay = "200ms"), dlq = "dlq.poison.bystander", prefetch = 10)]
async fn bystander(message: u32, diary: State<Diary>) {
    handle("poison.bystander", message, &diary).await;
}

const VARIABLES: [&str; 5] = ["POISON_BROKER", "POISON_QUEUE", "POISON_DIARY", "POISON_SQLITE", "POISON_REDIS"];

#[test]
#[ignore = "a process of its own, for the tests below"]
fn process_that_dies() {
    if !child::is_child() {
        return;
    }
    let [broker, queue, diary, sqlite, redis] = VARIABLES.map(|name| std::env::var(name).unwrap());
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(async {
        let stores = (mqguard::idempotency::SqliteStore::new(&sqlite), mqguard::idempotency::RedisStore::new(&redis));
        let guard =
            guard(&broker, &queue, Path::new(&diary)).store("sqlite", stores.0.unwrap()).store("redis", stores.1.unwrap());
        guard.run().await.unwrap();
    });
}

/// Runs processes until every message has ended.
async fn until_all_have_ended(queue: &str) {
    let (vhost, redis, directory) = (Vhost::new(), Database::new(), tempfile::tempdir().unwrap());
    let diary = Diary(directory.path().join("diary"));
    let sqlite = format!("sqlite://{}", directory.path().join("records.db").display());
    let here = guard(&vhost.url(), queue, &diary.0)
        .store("sqlite", mqguard::idempotency::SqliteStore::new(&sqlite).unwrap())
        .store("redis", mqguard::idempotency::RedisStore::new(&redis.url()).unwrap());
    within(here.declare()).await.unwrap();
    let publisher = here.publisher();
    for queue in [queue, "poison.bystander"] {
        for message in 1..=MESSAGES {
            let draft = publisher.json(&message).unwrap().message_id(format!("m-{message}"));
            within(draft.to_queue(queue)).await.unwrap();
        }
    }
    let values = [vhost.url(), queue.to_owned(), diary.0.display().to_string(), sqlite, redis.url()];
    let environment = || VARIABLES.into_iter().zip(values.iter().map(OsStr::new));
    for _ in 0..DEATHS {
        let mut process = Process::start_with("process_that_dies", environment());
        support::until("the process dies", || process.has_ended());
    }
    let last = Process::start_with("process_that_dies", environment());
    let dlq = format!("dlq.{queue}");
    let open = |diary: &Diary| -> Vec<String> {
        let lines = diary.read();
        let all = [queue, "poison.bystander"].into_iter().flat_map(|queue| (1..=MESSAGES).map(move |message| (queue, message)));
        let others = all.filter(|(of, message)| *of != queue || *message != POISON);
        others.map(|(queue, message)| format!("{queue} ends {message}")).filter(|line| !lines.contains_key(line)).collect()
    };
    let until = Instant::now() + 3 * process::PATIENCE;
    while !open(&diary).is_empty() {
        let (open, backlog) = (open(&diary), vhost.backlog(&[]));
        assert!(Instant::now() < until, "not done: {open:?}; in the queues: {backlog:?}; {:#?}", diary.read());
    }
    let letters = within(vhost.letters(&dlq, 1)).await;
    vhost.until_no_backlog(&[]);
    last.signal("TERM");
    drop(last);
    let lines = diary.read();
    assert_eq!(lines[&format!("{queue} begins {POISON}")], DEATHS, "{lines:#?}");
    let [letter] = letters.as_slice() else { panic!("one letter: {letters:?}") };
    assert_eq!(letter.message_id(), Some(format!("m-{POISON}").as_str()));
    assert_eq!(letter.reason(), Reason::CrashLoop, "{letter:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn on_a_quorum_queue_without_a_store() {
    until_all_have_ended("poison.quorum").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn on_a_classic_queue_without_a_store() {
    until_all_have_ended("poison.classic").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn one_at_a_time_with_others_prefetched() {
    until_all_have_ended("poison.one").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn on_a_quorum_queue_with_redis() {
    until_all_have_ended("poison.redis").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn on_a_classic_queue_with_a_database() {
    until_all_have_ended("poison.sqlite").await;
}
