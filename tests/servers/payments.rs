//! `payments` on RabbitMQ, which keeps what the killed workers had in hand.

use crate::payments_database::Database;
use crate::payments_process::run;
use crate::support::Vhost;

#[test]
#[ignore = "needs RabbitMQ and PostgreSQL: cargo xtask test"]
fn fifty_kills_on_rabbitmq_and_postgres() {
    let (vhost, database) = (Vhost::new(), Database::postgres());
    let places = ["--broker", &vhost.url(), "--store", &database.url()];
    let summary = run(&[&["--chaos", "--json", "--payments", "5000"], &places[..]].concat()).summary();
    summary.tell("RabbitMQ and PostgreSQL");
    summary.assert_exact(5_000, Some(50));
    vhost.until_no_backlog(&[]);
}
