use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use lapin::options::{BasicAckOptions, BasicCancelOptions, BasicNackOptions, BasicQosOptions, BasicRejectOptions};
use lapin::types::ShortString;
use lapin::{Channel, Consumer};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::connection::{LinkState, OPERATION_TIMEOUT, no_answer};
use super::ledger::{Acks, Ledger};
use crate::broker::contract::{BrokerError, Settle, Settlement};

/// How many settlements are looked at together.
const BATCH: usize = 1024;

/// What a quorum queue takes from one channel before it has worked it off. The channel keeps back what goes beyond until the queue is
/// ready for more, and forgets it when it is closed meanwhile, whatever it was asked before.
const QUEUE_LIMIT: usize = 32;

/// How long a queue may take to work that off; longer when its answers take long.
const WORKED_OFF: Duration = Duration::from_millis(250);

/// Settles the deliveries of one channel. One task does it for all: acks that come while earlier ones are being written are merged.
pub(super) struct Acker {
    queue: Arc<str>,
    commands: mpsc::UnboundedSender<Command>,
    channel: Channel,
    link: Arc<LinkState>,
}

enum Command {
    Settle(u64, Settlement),
    /// Ends the intake.
    Cancel(ShortString, oneshot::Sender<Result<(), BrokerError>>),
    /// Comes after the last settlement. The consumer is kept until the channel is closed: dropped before, it would be cancelled, which
    /// may cross the closing and cost the connection.
    Close(Consumer, oneshot::Sender<Result<(), BrokerError>>),
}

impl Acker {
    /// Starts the task. It ends, and the channel with it, on [`close`](Self::close), or when nobody holds the acker any more.
    pub(super) fn start(queue: Arc<str>, channel: Channel, link: Arc<LinkState>, prefetch: u16) -> Arc<Self> {
        let (commands, received) = mpsc::unbounded_channel();
        let worker = Worker {
            queue: Arc::clone(&queue),
            channel: channel.clone(),
            link: Arc::clone(&link),
            prefetch,
            dropped: 0,
            burst: 0,
            last_sent: Instant::now(),
            worked_off: WORKED_OFF,
        };
        tokio::spawn(worker.run(received));
        Arc::new(Self { queue, commands, channel, link })
    }

    /// Sends what is left to send, then cancels the consumer with this tag.
    pub(super) async fn cancel(&self, tag: ShortString) -> Result<(), BrokerError> {
        let (done, answer) = oneshot::channel();
        if self.commands.send(Command::Cancel(tag, done)).is_err() {
            return Err(BrokerError::Unavailable("the subscription has ended".into()));
        }
        // The task bounds the cancellation itself, not what it still has to write before.
        match timeout(OPERATION_TIMEOUT * 2, answer).await {
            Ok(Ok(cancelled)) => cancelled,
            Ok(Err(_)) => Err(BrokerError::Unavailable("the subscription has ended".into())),
            Err(_) => Err(no_answer("cancelling a consumer")),
        }
    }

    /// Sends what is left to send, and closes the channel once the broker has it. The answer comes when that is done; nobody needs to
    /// wait for it.
    pub(super) fn close(&self, consumer: Consumer) -> oneshot::Receiver<Result<(), BrokerError>> {
        let (done, answer) = oneshot::channel();
        // Fails only when the task is gone, and then the answer never comes, which says the same.
        drop(self.commands.send(Command::Close(consumer, done)));
        answer
    }
}

#[async_trait]
impl Settle for Acker {
    fn settle(&self, tag: u64, settlement: Settlement) {
        if self.commands.send(Command::Settle(tag, settlement)).is_err() {
            tracing::debug!(queue = %self.queue, ?settlement, "not settled: the subscription has ended");
        }
    }

    fn is_open(&self) -> bool {
        self.channel.status().connected() && self.link.is_open() && !self.commands.is_closed()
    }

    async fn closed(&self) {
        let mut changes = self.link.changes();
        while self.is_open() {
            tokio::select! {
                _ = changes.changed() => {}
                () = self.commands.closed() => {}
            }
        }
    }
}

async fn next(commands: &mut mpsc::UnboundedReceiver<Command>, batch: &mut Vec<Command>) -> usize {
    let Some(first) = commands.recv().await else { return 0 };
    // Handlers that are ready go first: what they settle travels along.
    tokio::task::yield_now().await;
    batch.push(first);
    1 + if commands.is_empty() { 0 } else { commands.recv_many(batch, BATCH).await }
}

struct Worker {
    queue: Arc<str>,
    channel: Channel,
    link: Arc<LinkState>,
    prefetch: u16,
    /// Settlements that had no effect, since they were last logged.
    dropped: usize,
    /// Frames sent with no more than `worked_off` between them: the queue may have some of them still before it.
    burst: usize,
    last_sent: Instant,
    worked_off: Duration,
}

impl Worker {
    async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let mut ledger = Ledger::default();
        let mut batch = Vec::new();
        let mut closing = None;
        while closing.is_none() && next(&mut commands, &mut batch).await > 0 {
            let (mut handed_back, mut cancel) = (Vec::new(), None);
            for command in batch.drain(..) {
                match command {
                    Command::Cancel(tag, done) => cancel = Some((tag, done)),
                    Command::Settle(tag, Settlement::Ack) => ledger.ack(tag),
                    Command::Settle(tag, settlement) => {
                        ledger.settled(tag);
                        handed_back.push((tag, settlement));
                    }
                    Command::Close(consumer, done) => closing = Some((consumer, done)),
                }
            }
            // Before the acks, each of which would have one more delivery set out. A quorum queue takes those back that are on their way
            // when it is told, and counts them as delivered again.
            if let Some((tag, done)) = cancel {
                // Whoever asked may have stopped waiting.
                drop(done.send(self.cancel(tag).await));
            }
            self.send(&handed_back, ledger.take()).await;
        }
        // From here on a settlement is told at once that it comes too late.
        commands.close();
        let mut late = 0;
        while let Ok(command) = commands.try_recv() {
            late += usize::from(matches!(command, Command::Settle(..)));
        }
        self.drop_settlements(late);
        match closing {
            Some((consumer, done)) => {
                let closed = self.close().await;
                drop(consumer);
                // Whoever asked may have stopped waiting.
                drop(done.send(closed));
            }
            None => drop(self.close().await),
        }
        self.link.changed();
    }

    async fn send(&mut self, handed_back: &[(u64, Settlement)], acks: Acks) {
        if !self.channel.status().connected() {
            self.drop_settlements(handed_back.len() + acks.len());
            return;
        }
        let frames = handed_back.len() + usize::from(acks.up_to.is_some()) + acks.singles.len();
        if frames == 0 {
            return;
        }
        // Before the acks: one that covers all up to its tag must not find these still out.
        let handed_back = handed_back.iter().map(|&(tag, settlement)| {
            let channel = &self.channel;
            async move {
                match settlement {
                    Settlement::Reject => channel.basic_reject(tag, BasicRejectOptions { requeue: true }).await,
                    _ => channel.basic_nack(tag, BasicNackOptions { multiple: false, requeue: true }).await,
                }
            }
        });
        let mut lost = join_all(handed_back).await.into_iter().filter(Result::is_err).count();
        let single = |tag| self.channel.basic_ack(tag, BasicAckOptions { multiple: false });
        if let Some((up_to, count)) = acks.up_to
            && self.channel.basic_ack(up_to, BasicAckOptions { multiple: count > 1 }).await.is_err()
        {
            lost += count;
        }
        lost += join_all(acks.singles.into_iter().map(single)).await.into_iter().filter(Result::is_err).count();
        self.drop_settlements(lost);
        if self.last_sent.elapsed() > self.worked_off {
            self.burst = 0;
        }
        self.burst += frames;
        self.last_sent = Instant::now();
    }

    async fn cancel(&mut self, tag: ShortString) -> Result<(), BrokerError> {
        let asked = Instant::now();
        match timeout(OPERATION_TIMEOUT, self.channel.basic_cancel(tag, BasicCancelOptions { nowait: false })).await {
            Ok(Ok(())) => {
                // A queue answers this after all that was sent before.
                self.burst = 0;
                self.worked_off = WORKED_OFF.max(4 * asked.elapsed());
                Ok(())
            }
            Ok(Err(error)) => Err(BrokerError::Unavailable(self.link.reason(&error))),
            Err(_) => Err(no_answer("cancelling a consumer")),
        }
    }

    fn drop_settlements(&mut self, count: usize) {
        if count > 0 {
            self.dropped += count;
            tracing::debug!(queue = %self.queue, count, total = self.dropped, "not settled: the channel is gone, the broker delivers again");
        }
    }

    /// Waits until the broker has worked off what was sent, then closes the channel.
    async fn close(&self) -> Result<(), BrokerError> {
        if self.burst > QUEUE_LIMIT && self.channel.status().connected() {
            sleep_until(self.last_sent + self.worked_off).await;
        }
        let closing = async {
            // Answered in turn, after the acks. Closing a channel right after the last ack can lose it.
            self.channel.basic_qos(self.prefetch, BasicQosOptions { global: false }).await?;
            self.channel.close(200, "OK".into()).await
        };
        match timeout(OPERATION_TIMEOUT, closing).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(BrokerError::Unavailable(self.link.reason(&error))),
            Err(_) => Err(no_answer("closing a channel")),
        }
    }
}
