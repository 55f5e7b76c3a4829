//! The whole on real servers: RabbitMQ and Redis, other processes, other clients, and what goes wrong between them.
//!
//! `cargo xtask test` starts the servers and sets the variables that name them; what disturbs a whole server starts one of its own.

#![cfg(all(feature = "rabbitmq", feature = "redis", unix))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[path = "servers/alone.rs"]
mod alone;
#[cfg(all(feature = "tls", feature = "mysql", feature = "postgres"))]
#[path = "servers/authority.rs"]
mod authority;
#[path = "servers/broken.rs"]
mod broken;
#[path = "servers/client.rs"]
mod client;
#[path = "servers/content.rs"]
mod content;
#[path = "servers/cuts.rs"]
mod cuts;
#[path = "servers/disturbed.rs"]
mod disturbed;
#[path = "servers/ends.rs"]
mod ends;
#[path = "servers/fanout.rs"]
mod fanout;
#[path = "servers/handed_back.rs"]
mod handed_back;
#[path = "servers/hold.rs"]
mod hold;
#[path = "../examples/orders/input.rs"]
#[allow(dead_code, unreachable_pub, reason = "of the example, this needs a part")]
mod input;
#[path = "servers/lateness.rs"]
mod lateness;
#[cfg(all(feature = "tls", feature = "mysql", feature = "postgres"))]
#[path = "servers/mariadb.rs"]
mod mariadb;
#[path = "servers/node.rs"]
mod node;
#[cfg(all(feature = "sqlite", feature = "postgres", feature = "mysql"))]
#[path = "servers/payments.rs"]
mod payments;
#[cfg(all(feature = "sqlite", feature = "postgres", feature = "mysql"))]
#[path = "payments/database.rs"]
mod payments_database;
#[cfg(all(feature = "sqlite", feature = "postgres", feature = "mysql"))]
#[path = "payments/process.rs"]
mod payments_process;
#[path = "orders/process.rs"]
mod process;
#[path = "servers/processes.rs"]
mod processes;
#[path = "servers/proxy.rs"]
mod proxy;
#[path = "servers/recovery.rs"]
mod recovery;
#[path = "redis/server.rs"]
#[allow(dead_code, reason = "it serves other tests too")]
mod redis_server;
#[path = "servers/restart.rs"]
mod restart;
#[path = "support/mod.rs"]
mod script;
#[path = "servers/shutdown.rs"]
mod shutdown;
#[path = "servers/start.rs"]
mod start;
#[path = "servers/stops.rs"]
mod stops;
#[path = "servers/support.rs"]
mod support;
#[cfg(all(feature = "tls", feature = "mysql", feature = "postgres"))]
#[path = "servers/tls.rs"]
mod tls;
