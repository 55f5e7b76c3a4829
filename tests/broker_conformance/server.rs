//! The RabbitMQ server that the suite runs on.

use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;

use mqguard::broker::{Broker, RabbitMq};
use tokio::task::LocalSet;

use crate::harness::Bench;

/// Tests that disturb the whole server write-lock this, all others read-lock it.
static SERVER: tokio::sync::RwLock<()> = tokio::sync::RwLock::const_new(());

/// As [`rabbitmq`], with the server to itself.
pub async fn rabbitmq_alone(test: impl AsyncFn(&Bench) + 'static) {
    let _server = SERVER.write().await;
    on_rabbitmq(test).await;
}

/// Runs a part of the suite on RabbitMQ, and removes what it leaves behind whether it succeeds or not.
pub async fn rabbitmq(test: impl AsyncFn(&Bench) + 'static) {
    let _server = SERVER.read().await;
    on_rabbitmq(test).await;
}

async fn on_rabbitmq(test: impl AsyncFn(&Bench) + 'static) {
    let broker = rabbitmq_broker();
    let bench = Rc::new(Bench::new(Arc::new(broker.clone())));
    let local = LocalSet::new();
    let running = Rc::clone(&bench);
    let result = local.run_until(async { tokio::task::spawn_local(async move { test(&running).await }).await }).await;
    let queues = bench.queues.lock().unwrap().clone();
    for queue in queues {
        drop(broker.delete_queue(&queue).await);
    }
    let exchanges = bench.exchanges.lock().unwrap().clone();
    for exchange in exchanges {
        drop(broker.delete_exchange(&exchange).await);
    }
    broker.close().await;
    if let Err(failed) = result {
        resume_unwind(failed.into_panic());
    }
}

/// The server that the tests run on.
pub fn rabbitmq_url() -> String {
    std::env::var("MQGUARD_TEST_RABBITMQ")
        .expect("MQGUARD_TEST_RABBITMQ is set to the URL of a RabbitMQ server: `cargo xtask test` does so")
}

pub fn rabbitmq_broker() -> RabbitMq {
    RabbitMq::new(&rabbitmq_url()).unwrap()
}

/// Runs `rabbitmqctl` against the server that the tests run on, and tells what it printed.
pub async fn rabbitmqctl<const N: usize>(arguments: [&str; N]) -> String {
    let program = std::env::var("MQGUARD_TEST_RABBITMQ_CTL").expect(
        "MQGUARD_TEST_RABBITMQ_CTL is set to a `rabbitmqctl` for the server of MQGUARD_TEST_RABBITMQ: `cargo xtask test` does so",
    );
    let output = tokio::process::Command::new(program).args(arguments).output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "rabbitmqctl {arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}
