//! Places on the servers that are one test's alone, and the in-process guards that run there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use mqguard::broker::{Address, Broker, ConsumeRequest, Delivery, RabbitMq, Settlement};
use mqguard::{DeadLetter, Guard, Message, Payload, Publisher, Running, Status};
use serde::Serialize;

use crate::process::{Orders, PATIENCE};
use crate::redis_server::Client;
use crate::script::{Job, Log, Step};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is set: `cargo xtask test` does so"))
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What has to happen in time.
#[track_caller]
pub(crate) fn within<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("at {caller}: did not happen within {PATIENCE:?}"))
    }
}

/// A virtual host.
pub(crate) struct Vhost {
    ctl: PathBuf,
    /// `guest:guest@127.0.0.1:5672`
    authority: String,
    name: String,
    temporary: bool,
}

impl Vhost {
    /// A new one on the test server, which is deleted when this is dropped.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let url = variable("MQGUARD_TEST_RABBITMQ");
        let rest = url.split_once("://").expect("a URL").1;
        let authority = rest[..rest.find(['/', '?']).unwrap_or(rest.len())].to_owned();
        let now = SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970").as_nanos();
        let name = format!("mqguard-{now}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let vhost = Self { ctl: variable("MQGUARD_TEST_RABBITMQ_CTL").into(), authority, name, temporary: true };
        let user = vhost.authority.split([':', '@']).next().unwrap_or("guest");
        // Both in one call: each starts a virtual machine.
        vhost.eval(&format!(
            "ok = rabbit_vhost:add(<<\"{0}\">>, <<\"test\">>),
             ok = rabbit_auth_backend_internal:set_permissions(<<\"{user}\">>, <<\"{0}\">>, <<\".*\">>, <<\".*\">>, <<\".*\">>, <<\"test\">>).",
            vhost.name
        ));
        vhost
    }

    /// The one that every server has, of another server.
    pub(crate) fn of_server(ctl: PathBuf, port: u16) -> Self {
        Self { ctl, authority: format!("guest:guest@127.0.0.1:{port}"), name: "/".into(), temporary: false }
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// `127.0.0.1:5672`
    pub(crate) fn address(&self) -> &str {
        self.authority.rsplit_once('@').map_or(self.authority.as_str(), |(_, address)| address)
    }

    pub(crate) fn url(&self) -> String {
        self.url_at(&self.authority)
    }

    pub(crate) fn url_at(&self, authority: &str) -> String {
        format!("amqp://{authority}/{}", self.name.replace('/', "%2f"))
    }

    pub(crate) fn broker(&self) -> RabbitMq {
        RabbitMq::new(&self.url()).expect("a usable URL")
    }

    /// Runs `rabbitmqctl`, and tells what it printed.
    #[track_caller]
    pub(crate) fn ctl(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.ctl).args(arguments).output().expect("rabbitmqctl runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "rabbitmqctl {arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Makes a user, who is removed with the virtual host's server; `name:password`. A URL holds both.
    pub(crate) fn user(&self, name: &str, rights: &[&str; 3]) -> String {
        let name = self.user_name(name);
        self.ctl(&["add_user", &name, "s3cret"]);
        self.set_rights(&name, rights);
        format!("{name}:s3cret")
    }

    /// Lets a user configure, write and read what matches.
    pub(crate) fn grant(&self, name: &str, rights: &[&str; 3]) {
        self.set_rights(&self.user_name(name), rights);
    }

    /// Users are the server's, and other tests have theirs.
    fn user_name(&self, name: &str) -> String {
        format!("{name}-{}", self.name.replace('/', ""))
    }

    fn set_rights(&self, user: &str, [configure, write, read]: &[&str; 3]) {
        self.ctl(&["set_permissions", "-p", &self.name, user, configure, write, read]);
    }

    /// Sets a policy for the queues whose names match.
    pub(crate) fn policy(&self, name: &str, pattern: &str, definition: &str) {
        self.ctl(&["set_policy", "-p", &self.name, "--apply-to", "queues", name, pattern, definition]);
    }

    #[track_caller]
    pub(crate) fn eval(&self, expression: &str) -> String {
        self.ctl(&["eval", expression])
    }

    /// Deletes an exchange, and waits until nobody finds it any more: from RabbitMQ 4.3 on that may be a moment later.
    pub(crate) async fn delete_exchange(&self, broker: &RabbitMq, name: &str) {
        within(broker.delete_exchange(name)).await.expect("it is deleted");
        let left = || self.ctl(&["list_exchanges", "--quiet", "--no-table-headers", "-p", &self.name, "name"]);
        tokio::task::block_in_place(|| until("the exchange is gone", || !left().lines().any(|exchange| exchange == name)));
    }

    /// The queues with what `column` says of each.
    #[track_caller]
    pub(crate) fn queues(&self, column: &str) -> BTreeMap<String, String> {
        let text = self.ctl(&["list_queues", "-p", &self.name, "--quiet", "--no-table-headers", "name", column]);
        text.lines().filter_map(|line| line.split_once('\t')).map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// Queues that hold messages that nobody consumes just now, other than these. Asked of the queues themselves: what `list_queues` says
    /// of quorum queues is some seconds old.
    pub(crate) fn backlog(&self, except: &[&str]) -> BTreeMap<String, u64> {
        let text = self.eval(&format!(
            "[begin {{ok, Ready, _}} = rabbit_amqqueue:stat(Q), {{resource, _, queue, Name}} = amqqueue:get_name(Q),
             io:format(\"queue ~s ~b~n\", [Name, Ready]) end || Q <- rabbit_amqqueue:list(<<\"{}\">>)], ok.",
            self.name
        ));
        let counts = text.lines().filter_map(|line| line.strip_prefix("queue ")?.rsplit_once(' '));
        let counts = counts.map(|(name, count)| (name.to_owned(), count.parse().expect("a number")));
        counts.filter(|(name, count)| *count > 0 && !except.contains(&name.as_str())).collect()
    }

    /// Has the consumer of `orders` take what it finds of orders that have all ended: a broker delivers again what was done when the
    /// acknowledgement was lost, and a process ends without waiting for that. Then no queue but these holds a message.
    #[track_caller]
    pub(crate) fn until_only_duplicates_were_left(&self, store: &str, except: &[&str]) {
        if !self.backlog(except).is_empty() {
            let mut consumer = Orders::start(&["--broker", &self.url(), "--store", store, "--json", "--consume-only"]);
            consumer.wait_until_it_handles_sigterm();
            self.until_no_backlog(except);
            consumer.signal("TERM");
            let summary = consumer.ended(PATIENCE).summary();
            assert_eq!((summary.totals(), summary.retries), ([0; 4], 0), "nothing but duplicates was left: {summary:?}");
        }
        self.until_no_backlog(except);
    }

    /// Waits until no queue but these holds a message that nobody consumes just now.
    #[track_caller]
    pub(crate) fn until_no_backlog(&self, except: &[&str]) {
        let end = Instant::now() + PATIENCE;
        loop {
            let backlog = self.backlog(except);
            if backlog.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "not within {PATIENCE:?}: no queue holds a message, but {backlog:?}");
        }
    }

    /// Takes all letters out of a dead-letter queue, which has so many.
    pub(crate) async fn letters(&self, queue: &str, count: usize) -> Vec<DeadLetter<serde_json::Value>> {
        let deliveries = take(&self.broker(), queue, count).await;
        deliveries.iter().map(|delivery| DeadLetter::decode(&delivery.message).expect("a letter")).collect()
    }
}

/// Something that happens in the broker at a certain moment: `rabbitmqctl`, which takes a second to start, waits for it there.
pub(crate) struct Trap {
    ctl: Child,
    output: BufReader<ChildStdout>,
}

impl Vhost {
    /// Evaluates `expression`, which may use `V`, the virtual host, once a quorum queue has taken this many commands.
    pub(crate) fn trap(&self, queue: &str, commands: u64, expression: &str) -> Trap {
        let expression = format!(
            "V = <<\"{}\">>, io:format(\"waiting~n\"),
             Taken = fun() -> try
                 {{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(V, queue, <<\"{queue}\">>)), {{N, _}} = amqqueue:get_pid(Q),
                 {{ok, {{{{Index, _}}, _}}, _}} = ra:local_query({{N, node()}}, fun(_) -> ok end), Index
             catch _:_ -> 0 end end,
             Wait = fun Wait() -> case Taken() of Many when Many > {commands} -> ok; _ -> timer:sleep(5), Wait() end end,
             Wait(), {expression}.",
            self.name
        );
        let mut ctl =
            Command::new(&self.ctl).args(["eval", &expression]).stdout(Stdio::piped()).spawn().expect("rabbitmqctl runs");
        let mut output = BufReader::new(ctl.stdout.take().expect("it is piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it says something");
        assert_eq!(line, "waiting\n");
        Trap { ctl, output }
    }
}

impl Trap {
    /// Waits until it has happened.
    #[track_caller]
    pub(crate) fn sprung(mut self) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("it says something");
        assert!(self.ctl.wait().expect("it ends").success(), "{rest}");
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.ctl.kill().ok();
        self.ctl.wait().ok();
    }
}

impl Drop for Vhost {
    fn drop(&mut self) {
        if self.temporary {
            // Nobody needs to wait for it; a failure shows in the next test that looks.
            let users = format!(
                "[rabbit_auth_backend_internal:delete_user(U, <<\"test\">>) || U <- [proplists:get_value(user, I) || I <- \
                 rabbit_auth_backend_internal:list_users()], binary:match(U, <<\"-{0}\">>) =/= nomatch], \
                 rabbit_vhost:delete(<<\"{0}\">>, <<\"test\">>).",
                self.name
            );
            Command::new(&self.ctl).args(["--quiet", "eval", &users]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok();
        }
    }
}

/// Takes so many messages out of a queue, and sees that there are no more.
pub(crate) async fn take(broker: &RabbitMq, queue: &str, count: usize) -> Vec<Delivery> {
    let request = ConsumeRequest { queue: queue.into(), tag: "test".into(), prefetch: 100 };
    let mut subscription = within(broker.consume(request)).await.expect("the queue is there");
    let mut taken = Vec::new();
    while taken.len() < count {
        let mut delivery = within(subscription.next()).await.expect("the connection holds");
        std::mem::replace(&mut delivery.receipt, nowhere()).settle(Settlement::Ack);
        taken.push(delivery);
    }
    let more = tokio::time::timeout(Duration::from_millis(300), subscription.next()).await;
    assert!(more.is_err(), "more than {count} messages in {queue}: {more:?}");
    within(subscription.close()).await.expect("it closes");
    taken
}

/// Takes one message out of a queue, as soon as there is one.
pub(crate) async fn take_any(broker: &RabbitMq, queue: &str) -> Delivery {
    let request = ConsumeRequest { queue: queue.into(), tag: "test".into(), prefetch: 1 };
    let mut subscription = within(broker.consume(request)).await.expect("the queue is there");
    let mut delivery = within(subscription.next()).await.expect("the connection holds");
    std::mem::replace(&mut delivery.receipt, nowhere()).settle(Settlement::Ack);
    within(subscription.close()).await.expect("it closes");
    delivery
}

/// A message with a job in it, named by its id.
pub(crate) fn job(name: &str, steps: &[Step]) -> Message {
    let body = serde_json::to_vec(&Job { name: name.into(), steps: steps.into() }).expect("it is JSON");
    let mut message = Message { body: body.into(), ..Message::default() };
    message.properties.message_id = Some(name.into());
    message.properties.delivery_mode = Some(2);
    message
}

/// A receipt that settles nothing.
fn nowhere() -> mqguard::broker::Receipt {
    struct Nowhere;
    #[async_trait::async_trait]
    impl mqguard::broker::Settle for Nowhere {
        fn settle(&self, _: u64, _: Settlement) {}
        fn is_open(&self) -> bool {
            false
        }
        async fn closed(&self) {}
    }
    mqguard::broker::Receipt::new(0, std::sync::Arc::new(Nowhere))
}

/// A database of the Redis test server.
pub(crate) struct Database {
    number: usize,
    address: String,
}

/// Which are taken. A server has 16 as long as nobody configures another number; 0 is everybody's.
static TAKEN: Mutex<[bool; 16]> =
    Mutex::new([true, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false]);
static GIVEN_BACK: Condvar = Condvar::new();

impl Database {
    /// An empty one, as soon as one is free.
    pub(crate) fn new() -> Self {
        let url = variable("MQGUARD_TEST_REDIS");
        let rest = url.split_once("://").expect("a URL").1;
        let address = rest.split('/').next().unwrap_or_default().to_owned();
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let number = loop {
            if let Some(free) = taken.iter().position(|taken| !taken) {
                taken[free] = true;
                break free;
            }
            taken = GIVEN_BACK.wait(taken).unwrap_or_else(PoisonError::into_inner);
        };
        let database = Self { number, address };
        database.client().run("FLUSHDB");
        database
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/{}", self.address, self.number)
    }

    pub(crate) fn client(&self) -> Client {
        let mut client = Client::connect(&self.address);
        client.run(&format!("SELECT {}", self.number));
        client
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner)[self.number] = false;
        GIVEN_BACK.notify_one();
    }
}

/// All idempotency records: by message id, what they say.
pub(crate) fn records(client: &mut Client) -> BTreeMap<String, BTreeMap<String, String>> {
    let keys = client.run("KEYS mq:dedup:*").list();
    let records: Vec<_> = keys.iter().map(|key| fields(&client.run(&format!("GET {key}")).text())).collect();
    let count = records.len();
    let by_id: BTreeMap<_, _> = records.into_iter().map(|record| (record["message_id"].clone(), record)).collect();
    assert_eq!(by_id.len(), count, "two records of one message");
    by_id
}

/// What a record says: `<owner> <state> ... [letter=<letter> ]...["<consumer>","<key>","<message id>"]`.
fn fields(record: &str) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let words: Vec<&str> = record.splitn(8, ' ').collect();
    fields.insert("state".to_owned(), words[1].to_owned());
    if let Some((letter, _)) = words[7].strip_prefix("letter=").and_then(|rest| rest.split_once(' ')) {
        fields.insert("letter".to_owned(), letter.to_owned());
    }
    let shown = record.rfind("[\"").expect("the identity at its end");
    let [_, _, message_id]: [String; 3] = serde_json::from_str(&record[shown..]).expect("consumer, key and message id");
    fields.insert("message_id".to_owned(), message_id);
    fields
}

/// How many records there are.
pub(crate) fn count_records(client: &mut Client) -> i64 {
    client.run("DBSIZE").number()
}

/// A guard in this process on a virtual host, and the log that its handlers write as `State<Log>`.
pub(crate) struct Rig {
    pub(crate) log: Log,
    pub(crate) publisher: Publisher,
    pub(crate) running: Running,
}

impl Rig {
    /// Starts a guard with what `build` adds.
    pub(crate) async fn start(vhost: &Vhost, build: impl FnOnce(Guard) -> Guard) -> Self {
        Self::at(&vhost.url(), build).await
    }

    /// The same on a broker at another URL.
    pub(crate) async fn at(url: &str, build: impl FnOnce(Guard) -> Guard) -> Self {
        let log = Log::new();
        let guard = build(log.attach(Guard::connect(url).expect("a usable URL")));
        let publisher = guard.publisher();
        let running = within(guard.start()).await.expect("the guard starts");
        Self { log, publisher, running }
    }

    /// Publishes a job under its name as message id.
    pub(crate) async fn publish(&self, queue: &str, name: &str, steps: &[Step]) {
        self.publish_json(queue, name, &Job { name: name.into(), steps: steps.into() }).await;
    }

    pub(crate) async fn publish_json(&self, queue: &str, id: &str, payload: &impl Serialize) {
        let draft = self.publisher.json(payload).expect("it is JSON").message_id(id);
        within(draft.to_queue(queue)).await.expect("it is published");
    }

    /// Waits until what the log says fulfils a condition.
    #[track_caller]
    pub(crate) fn until(&self, condition: impl Fn(&Log) -> bool) -> impl Future<Output = ()> {
        within(self.log.until(condition))
    }

    /// Waits until each of these messages is processed or a letter.
    #[track_caller]
    pub(crate) fn ended<'a>(&'a self, ids: &'a [&str]) -> impl Future<Output = ()> {
        self.until(move |log| ids.iter().all(|id| log.ended(id)))
    }

    /// Waits until health says this of the only consumer, and tells how long that took.
    #[track_caller]
    pub(crate) fn until_health(&self, condition: impl Fn(&Status) -> bool) -> impl Future<Output = Duration> {
        let began = Instant::now();
        within(async move {
            while !self.running.health().consumers.iter().all(|(_, status)| condition(status)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            began.elapsed()
        })
    }

    pub(crate) async fn shutdown(self) {
        within(self.running.shutdown()).await.expect("the guard ends well");
    }
}

/// Publishes a message as it is.
pub(crate) async fn publish(broker: &RabbitMq, queue: &str, message: &Message) {
    within(broker.publish(&Address::queue(queue), message)).await.expect("it is published");
}

/// A few, or as many as are asked for to measure.
pub(crate) fn rounds() -> u64 {
    std::env::var("MQGUARD_TEST_ROUNDS").map_or(4, |rounds| rounds.parse().expect("a number"))
}
