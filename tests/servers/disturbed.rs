//! Connections that are cut, and a store that stops answering, in the middle of `orders`.

use std::time::Duration;

use crate::process::{Orders, PATIENCE, Summary};
use crate::processes::QUEUE;
use crate::redis_server::{Client, Server};
use crate::support::{Database, Vhost, count_records, until};

/// Runs `orders`, and does something to it whenever so many orders were begun.
#[track_caller]
fn disturbed(vhost: &Vhost, store: &str, client: &mut Client, at: &[i64], mut disturb: impl FnMut(&mut Client)) -> Summary {
    let orders = Orders::start(&["--broker", &vhost.url(), "--store", store, "--json"]);
    for &at in at {
        until("orders are processed", || count_records(client) >= at);
        disturb(client);
        assert!(count_records(client) < 5_000, "it was to be disturbed in the middle");
    }
    let summary = orders.ended(PATIENCE).summary();
    summary.assert_adds_up();
    summary
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn connections_to_the_broker_are_closed() {
    const CLOSE: &str = "[rabbit_networking:close_connection(C, \"a test\")
        || C <- rabbit_networking:connections(), [{vhost, V}] =:= rabbit_networking:connection_info(C, [vhost])]";
    let (vhost, database) = (Vhost::new(), Database::new());
    let mut traps = [1_000, 3_000].map(|commands| vhost.trap(QUEUE, commands, CLOSE)).into_iter();
    let closed = |_: &mut Client| traps.next().unwrap().sprung();
    let summary = disturbed(&vhost, &database.url(), &mut database.client(), &[1, 2], closed);
    // What was under way when the connection was lost waits for no lease (30 s) to lapse.
    assert!(summary.elapsed_ms < 28_000, "{summary:?}");
    eprintln!("connections closed twice: {} duplicates, {} ms", summary.duplicates, summary.elapsed_ms);
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn connections_to_the_store_are_killed() {
    let vhost = Vhost::new();
    let server = Server::start();
    let kill = |client: &mut Client| {
        let killed = client.run("CLIENT KILL TYPE normal SKIPME yes").number();
        assert!(killed > 0, "there was no connection");
    };
    let at: Vec<i64> = (1..=16).map(|n| n * 250).collect();
    let summary = disturbed(&vhost, &server.url(), &mut server.client(), &at, kill);
    eprintln!("connections to the store killed 16 times: {} duplicates, {} ms", summary.duplicates, summary.elapsed_ms);
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn the_store_is_frozen() {
    let vhost = Vhost::new();
    let server = Server::start();
    // Shorter and longer than an answer may take.
    let mut freezes = [Duration::from_secs(3), Duration::from_secs(7)].into_iter();
    let freeze = |_: &mut Client| {
        server.signal("STOP");
        std::thread::sleep(freezes.next().unwrap());
        server.signal("CONT");
    };
    let summary = disturbed(&vhost, &server.url(), &mut server.client(), &[500, 2_500], freeze);
    eprintln!("the store frozen for 3 s and 7 s: {} duplicates, {} ms", summary.duplicates, summary.elapsed_ms);
}
