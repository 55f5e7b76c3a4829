//! What is said when it cannot start: clearly, and without a password.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use mqguard::broker::{Broker, DeclareMode, Queue, QueueType, Topology};

use crate::node::free_port;
use crate::process::{Orders, PATIENCE};
use crate::support::{Database, Vhost, until, within};

/// Runs `orders`, which fails; what it said.
fn complaint(broker: &str, store: &str) -> String {
    let ended = Orders::run(&["--broker", broker, "--store", store, "--consume-only"]);
    let complaint = ended.complaint().to_owned();
    assert_eq!(ended.status.code(), Some(1), "{complaint}");
    for secret in ["hunter2", "hunt", "er2"] {
        assert!(!complaint.contains(secret), "{complaint}");
    }
    complaint
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn a_log_in_that_is_refused_is_told() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let address = vhost.address();
    for (broker, part) in [
        (vhost.url_at(&format!("guest:hunter2@{address}")), "ACCESS_REFUSED"),
        (vhost.url_at(&format!("nobody:hunter2@{address}")), "ACCESS_REFUSED"),
        (format!("amqp://{}/no-such-host", vhost.authority()), "vhost no-such-host not found"),
    ] {
        let complaint = complaint(&broker, &database.url());
        for part in [part, address, "order.process", "refused access"] {
            assert!(complaint.contains(part), "no `{part}` in {complaint}");
        }
    }
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn urls_that_are_malformed_are_told() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let (broker, store) = (vhost.url(), database.url());
    for (broker, store, part) in [
        ("amqp://guest:hunt/er2@127.0.0.1/v", store.as_str(), "write `/` as %2F"),
        ("amqp://guest:hunter2@127.0.0.1:port/v", &store, "port"),
        ("amqp://guest:hunter2@127.0.0.1/a/b", &store, "virtual host"),
        ("amqp://guest:hunter2@/v", &store, "host"),
        ("amqp://guest:hunter2@127.0.0.1/v?colour=1", &store, "unknown parameter `colour`"),
        ("amqp://guest:hun?ter2@127.0.0.1/v", &store, "`?` as %3F"),
        ("amqp://guest:hun#ter2@127.0.0.1/v", &store, "`#` as %23"),
        ("http://guest:hunter2@127.0.0.1/v", &store, "amqp://user:password@host:5672/vhost"),
        (&broker, "redis://:hunt/er2@127.0.0.1", "redis://"),
        (&broker, "redis://:hunter2@127.0.0.1/first", "number of a database"),
        (&broker, "mongodb://u:hunter2@127.0.0.1/v", "redis://host:6379/0"),
    ] {
        let complaint = complaint(broker, store);
        assert!(complaint.contains(part), "no `{part}` in {complaint}");
    }
}

/// Somebody made the queue before, with other arguments.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_queue_with_other_arguments_is_told() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let admin = vhost.broker();
    let classic = Queue::new("order.process", QueueType::Classic);
    let mut slow = Queue::new("order.process.retry.100ms", QueueType::Quorum);
    slow.message_ttl = Some(Duration::from_millis(250));
    slow.dead_letters = Some(mqguard::broker::DeadLetterTarget { exchange: String::new(), routing_key: "order.process".into() });
    for (queue, argument, actual, declared) in
        [(classic, "x-dead-letter-exchange", "none", "dlx.exchange"), (slow, "x-message-ttl", "250", "100")]
    {
        let topology = Topology { queues: vec![queue.clone()], ..Topology::default() };
        within(admin.declare(&topology, DeclareMode::Declare)).await.unwrap();
        let complaint = complaint(&vhost.url(), &database.url());
        for part in [
            &format!("queue `{}` is there with other settings", queue.name),
            &format!("`{argument}` is {actual}, declared is {declared}"),
            "Delete it",
            "consumer `process_order`",
        ] {
            assert!(complaint.contains(part), "no `{part}` in {complaint}");
        }
        within(admin.delete_queue(&queue.name)).await.unwrap();
    }
}

/// Passes connections on to the broker.
fn forward(port: u16, to: String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    std::thread::spawn(move || {
        for here in listener.incoming() {
            let (here, there) = (here.unwrap(), TcpStream::connect(&to).unwrap());
            for (mut from, mut to) in [(here.try_clone().unwrap(), there.try_clone().unwrap()), (there, here)] {
                std::thread::spawn(move || {
                    let mut buffer = [0; 65_536];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        if to.write_all(&buffer[..count]).is_err() {
                            break;
                        }
                    }
                    to.shutdown(Shutdown::Both).ok();
                });
            }
        }
    });
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn a_broker_that_cannot_be_reached_is_waited_for() {
    let (vhost, database) = (Vhost::new(), Database::new());
    let port = free_port();
    let (user, _) = vhost.authority().rsplit_once('@').unwrap();
    let broker = vhost.url_at(&format!("{user}@127.0.0.1:{port}"));
    let arguments = ["--broker", &broker, "--store", &database.url(), "--consume-only"];
    let mut orders = Orders::start(&arguments);
    orders.wait_for_log("cannot connect to RabbitMQ");
    // Long enough for some more attempts, of which nothing more is said.
    let attempts = std::time::Instant::now();
    until("it has tried some more", || attempts.elapsed() > Duration::from_secs(2));
    let log = orders.log();
    assert_eq!(log.matches("cannot connect to RabbitMQ").count(), 1, "{log}");
    assert_eq!(log.matches("not consuming, trying to reconnect").count(), 1, "{log}");
    assert_eq!(log.lines().count(), 2, "{log}");
    assert!(log.contains(&format!("127.0.0.1:{port}")) && log.contains("refused") && log.contains("order.process"), "{log}");
    assert!(!log.contains("guest:guest"), "{log}");
    assert!(orders.is_running());

    forward(port, vhost.address().to_owned());
    orders.wait_until_it_handles_sigterm();
    orders.signal("TERM");
    let ended = orders.ended(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}
