//! The same with mqguard.

use std::time::{Duration, Instant};

use mqguard::{Guard, RetryableError, State, consumer};

use crate::work::{Done, Load, Order};

#[derive(Debug, thiserror::Error, RetryableError)]
#[error("cannot happen")]
#[fatal]
struct Never;

#[consumer(queue = "bench.guarded", dlq = "dlq.bench.guarded", prefetch = 200)]
async fn drain(order: Order, done: State<Done>) -> Result<(), Never> {
    done.work(&order);
    Ok(())
}

pub(crate) async fn plain(load: Load) -> anyhow::Result<Duration> {
    let done = Done::after(load.messages);
    run(Guard::connect(&load.broker)?.consumer::<drain>().state(done.clone()), done).await
}

mod once {
    use super::{Done, Never, Order, State, consumer};

    #[consumer(queue = "bench.guarded", dlq = "dlq.bench.guarded", prefetch = 200, idempotent = "redis")]
    pub(super) async fn drain(order: Order, done: State<Done>) -> Result<(), Never> {
        done.work(&order);
        Ok(())
    }
}

pub(crate) async fn with_redis(load: Load) -> anyhow::Result<Duration> {
    let done = Done::after(load.messages);
    let guard = Guard::connect(&load.broker)?.store_url(&load.redis).consumer::<once::drain>();
    run(guard.state(done.clone()), done).await
}

async fn run(guard: Guard, done: Done) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let running = guard.start().await?;
    done.wait().await;
    running.shutdown().await?;
    Ok(started.elapsed())
}
