//! The consumer at work, in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mqguard::{Event, EventKind, Guard, PublishError, Publisher, Running};
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;

use super::audit::{Snapshot, State};
use super::bank::{Books, Problem};
use super::consumers::{self, QUEUE};
use super::input::Payment;

/// How often it is looked how many payments have ended.
pub const LOOK: Duration = Duration::from_millis(100);

/// Counts what the guard tells.
#[derive(Clone, Default)]
pub struct Tally {
    duplicates: Arc<AtomicU64>,
    retries: Arc<AtomicU64>,
}

impl Tally {
    fn count(&self, event: &Event<'_>) {
        match event.kind {
            EventKind::Duplicate | EventKind::Stale => self.duplicates.fetch_add(1, Ordering::Relaxed),
            EventKind::Retried { .. } => self.retries.fetch_add(1, Ordering::Relaxed),
            _ => return,
        };
    }

    pub fn duplicates(&self) -> u64 {
        self.duplicates.load(Ordering::Relaxed)
    }

    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}

pub fn is_embedded(broker: &str) -> bool {
    broker.starts_with("memory:")
}

/// Publishes all payments and makes them, in this process.
pub async fn publish_and_consume(broker: &str, books: &Books, payments: Vec<Payment>) -> Result<Tally, Problem> {
    let tally = Tally::default();
    let counted = tally.clone();
    let guard = consumers::guard(broker, books)?.observe(move |event| counted.count(event));
    let running = guard.start().await?;
    let work = async {
        let (all, repeats) = (payments.len(), payments.iter().filter(|payment| payment.is_published_twice()).count() as u64);
        publish(&running.publisher(), payments.into_iter().map(Outgoing::new).collect()).await?;
        while books.count_ended().await? < all || tally.duplicates() < repeats {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    };
    until(&running, work).await?;
    running.shutdown().await?;
    Ok(tally)
}

/// Makes payments until whoever has started this process closes its standard input, as the end of that process does too.
///
/// The embedded broker ends with its process, and so do its messages: each worker publishes again what has not ended.
pub async fn work(broker: &str, books: &Books, payments: Vec<Payment>) -> Result<(), Problem> {
    let running = consumers::guard(broker, books)?.start().await?;
    let work = async {
        if is_embedded(broker) {
            publish(&running.publisher(), left(payments, &books.snapshot().await?)).await?;
        }
        std::future::pending().await
    };
    let mut told = [0];
    let mut input = tokio::io::stdin();
    tokio::select! {
        worked = until(&running, work) => worked?,
        _ = input.read(&mut told) => {}
    }
    Ok(running.shutdown().await?)
}

/// What a broker would have kept: the payments that have not ended, each at the run that is next. A letter that was out, but is not in
/// the books, has ended with the broker too: its payment begins anew, as a replay from the dead letters does.
fn left(payments: Vec<Payment>, books: &Snapshot) -> Vec<Outgoing> {
    let left = payments.into_iter().filter_map(|payment| {
        let Some(record) = books.records.get(&payment.id) else { return Some(Outgoing::new(payment)) };
        match record.state {
            State::Success => None,
            State::Failed if books.letters.contains_key(&payment.id) => None,
            State::Failed => Some(Outgoing { payment, generation: record.generation + 1, retries: 0 }),
            State::Unsettled => Some(Outgoing { payment, generation: record.generation, retries: record.step }),
        }
    });
    left.collect()
}

/// A payment to be published, and which run of it is next.
struct Outgoing {
    payment: Payment,
    generation: i64,
    retries: i64,
}

impl Outgoing {
    fn new(payment: Payment) -> Self {
        Self { payment, generation: 0, retries: 0 }
    }
}

/// Does the work, unless the consumers fail or somebody interrupts it.
async fn until(running: &Running, work: impl Future<Output = Result<(), Problem>>) -> Result<(), Problem> {
    tokio::select! {
        worked = work => worked,
        failed = running.failed() => failed.map_err(Into::into),
        interrupted = tokio::signal::ctrl_c() => Err(interrupted.map_or_else(Into::into, |()| "interrupted".into())),
    }
}

/// Declares the queues and publishes all payments, to be made by others.
pub async fn publish_only(guard: Guard, payments: Vec<Payment>) -> Result<(), Problem> {
    guard.declare().await?;
    publish(&guard.publisher(), payments.into_iter().map(Outgoing::new).collect()).await
}

/// Publishes payments, those that are due twice, with some publishes under way at once.
async fn publish(publisher: &Publisher, payments: Vec<Outgoing>) -> Result<(), Problem> {
    const UNDER_WAY: usize = 64;
    let mut publishing = JoinSet::new();
    for payment in payments {
        if publishing.len() >= UNDER_WAY {
            publishing.join_next().await.transpose()?.transpose()?;
        }
        let publisher = publisher.clone();
        publishing.spawn(async move {
            for _ in 0..if payment.payment.is_published_twice() { 2 } else { 1 } {
                publish_until_confirmed(&publisher, &payment).await?;
            }
            Ok::<_, Problem>(())
        });
    }
    while let Some(published) = publishing.join_next().await {
        published??;
    }
    Ok(())
}

/// A publish whose answer was lost is repeated under the same id: if both arrive, one is a duplicate.
async fn publish_until_confirmed(publisher: &Publisher, outgoing: &Outgoing) -> Result<(), Problem> {
    for attempt in 0u32.. {
        let Outgoing { payment, generation, retries } = outgoing;
        let mut draft = publisher.json(payment)?.message_id(payment.message_id());
        if (*generation, *retries) != (0, 0) {
            draft = draft.header("mqguard-generation", *generation).header("mqguard-attempt", *retries);
        }
        match draft.to_queue(QUEUE).await {
            Err(PublishError::Unknown { .. } | PublishError::Unavailable { .. }) if attempt < 100 => {
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            result => return Ok(result.map(drop)?),
        }
    }
    Ok(())
}
