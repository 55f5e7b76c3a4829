//! Messages under which processes die. From the second death on a message runs alone, and after one more than [`MAX_CRASHES`] it is a
//! dead letter.
//!
//! With a store the record counts the deaths, as lapsed leases. Without one the message does, as deliveries that nobody settled: those that
//! only waited beside it count too, so what is under suspicion moves to a queue of its own, of which a process takes one at a time, and
//! counts as dead under a message only what it ran alone.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::courier::{Destination, GaveUp};
use super::isolation::{Place, Turn};
use super::outcome::ErrorText;
use super::pipeline::{InFlight, Pipeline};
use super::settle::Recorded;
use crate::broker::Message;
use crate::dead_letter::{Reason, fit_copy};
use crate::event::EventKind;
use crate::idempotency::{MAX_CRASHES, Step};
use crate::retry::Progress;

/// Deaths after which a message runs alone.
const ALONE_FROM: u32 = 2;
const _: () = assert!(ALONE_FROM <= MAX_CRASHES, "what is condemned has run alone before");

/// How long a message waits for the others to end, and twice as long each time: everything else waits with it.
const FIRST_PATIENCE: Duration = Duration::from_secs(2);
/// The others have this long in between.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the broker may take for a copy of what is handed back.
const COPY_BACK: Duration = Duration::from_secs(1);

impl Pipeline {
    /// A delivery from the queue of those that run alone.
    pub(crate) async fn process_alone(&self, mut flight: Box<InFlight>, mut turn: Turn) {
        if flight.delivery.redelivered {
            flight.progress.crashes = flight.progress.crashes.max(ALONE_FROM);
            return self.count_crashes(flight).await;
        }
        let mut patience = FIRST_PATIENCE;
        let place = loop {
            let alone = tokio::select! {
                biased;
                () = self.stop.drain.cancelled() => return self.give_back(flight).await,
                alone = self.isolation.alone(turn, patience) => alone,
            };
            match alone {
                Ok(place) => break place,
                Err(again) => turn = again,
            }
            tokio::select! { () = tokio::time::sleep(PAUSE) => {}, () = self.stop.drain.cancelled() => {} }
            patience *= 2;
        };
        flight.place = Some(place);
        self.warn_of_poison(&flight, flight.progress.crashes);
        self.process(flight).await;
    }

    /// The copy that counts how often the message was delivered and not settled takes the place of the delivery, which goes on only when
    /// the headers have no room for that.
    ///
    /// A crash between the copy and the ack leaves two copies, as any crash can where nothing tells duplicates.
    pub(super) async fn count_crashes(&self, mut flight: Box<InFlight>) {
        let crashes = flight.progress.crashes.saturating_add(u32::from(flight.delivery.redelivered));
        if crashes > MAX_CRASHES && flight.delivery.redelivered {
            let message = format!("the process died, or lost its connection, {crashes} times while it had the message");
            return self.die(flight, Reason::CrashLoop, crash_loop(message)).await;
        }
        let Some(message) = self.counting(&flight, crashes) else {
            flight.is_uncountable = true;
            return self.process(flight).await;
        };
        let (never, receipt) = (CancellationToken::new(), &flight.delivery.receipt);
        match self.courier.deliver(destination(crashes), &message, receipt, [&never, &self.stop.force]).await {
            Ok(()) => {
                self.acknowledge(flight, EventKind::Returned);
                if is_suspect(crashes) {
                    self.quarantined.notify_one();
                }
            }
            Err(GaveUp) => self.give_back(flight).await,
        }
    }

    /// The message as it came, but for the count; `None` when its headers have no room for that.
    fn counting(&self, flight: &InFlight, crashes: u32) -> Option<Message> {
        let mut message = self.copy(flight, &Progress { crashes, ..self.progress_of(&flight.delivery) });
        fit_copy(&mut message, self.broker.frame_max()).then_some(message)
    }

    /// Publishes a copy that counts no more than the delivery; whether the broker has it.
    pub(super) async fn copy_back(&self, flight: &InFlight) -> bool {
        let crashes = flight.progress.crashes;
        let Some(message) = self.counting(flight, crashes) else { return false };
        let (never, receipt) = (CancellationToken::new(), &flight.delivery.receipt);
        let copied = self.courier.deliver(destination(crashes), &message, receipt, [&never, &never]);
        matches!(tokio::time::timeout(COPY_BACK, copied).await, Ok(Ok(())))
    }

    /// Has a claimed message run alone after so many deaths, or come again when that takes too long. Until then it claims nothing: it may
    /// be another message that the process dies of next.
    pub(super) async fn run_alone(&self, mut flight: Box<InFlight>) {
        let next = flight.progress.turn();
        match self.record(&mut flight, Step::Release { next }).await {
            Recorded::Yes => flight.kept = None,
            Recorded::Refused => return self.hand_back_later(flight, Duration::ZERO).await,
            Recorded::Unknown => return self.give_back(flight).await,
        }
        flight.place = None;
        let patience = FIRST_PATIENCE * (1 << flight.progress.busy.min(16));
        let alone = async {
            let turn = tokio::time::timeout(patience, self.isolation.turn()).await.ok()?;
            self.isolation.alone(turn, patience).await.ok()
        };
        flight.place = tokio::select! {
            biased;
            () = self.stop.drain.cancelled() => return self.give_back(flight).await,
            place = alone => place,
        };
        if flight.place.is_none() {
            return self.hand_back_later(flight, Duration::MAX).await;
        }
        self.warn_of_poison(&flight, flight.crashes);
        self.process(flight).await;
    }

    fn warn_of_poison(&self, flight: &InFlight, crashes: u32) {
        tracing::warn!(
            queue = self.spec.queue,
            message_id = flight.message_id(),
            "the process died, or lost its lease or connection, {crashes} times while it had this message: now it runs alone"
        );
    }
}

impl InFlight {
    /// Whether a process may have died under it, as far as the message and its delivery tell.
    pub(super) fn is_suspicious(&self) -> bool {
        let may_have_died = self.delivery.redelivered || is_suspect(self.progress.crashes);
        may_have_died && !self.is_alone() && !self.is_uncountable
    }

    pub(super) fn is_alone(&self) -> bool {
        matches!(self.place, Some(Place::Alone { .. }))
    }
}

pub(super) fn is_suspect(crashes: u32) -> bool {
    crashes >= ALONE_FROM
}

fn destination(crashes: u32) -> Destination {
    if is_suspect(crashes) { Destination::Quarantine } else { Destination::Hold(Duration::ZERO) }
}

pub(super) fn crash_loop(message: String) -> ErrorText {
    ErrorText { kind: "crash-loop".into(), message, chain: Vec::new() }
}
