//! How a delivery ends. The order of the steps is what makes it safe; each method says what a crash between them leaves.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::context::Effects;
use super::courier::{Destination, GaveUp};
use super::handler::Ran;
use super::outcome::{ErrorText, Failure};
use super::pipeline::{InFlight, Pipeline};
use crate::backoff::Pause;
use crate::broker::{HeaderValue, Headers, Message, Settlement};
use crate::dead_letter::{BrokerDeath, Death, Reason, fit_copy, letter};
use crate::event::EventKind;
use crate::idempotency::{Kept, Ledger, Outage, RECORD_PATIENCE, Settled, Step, StoreError};
use crate::retry::{LONGEST_DELAY, Next, Progress, copy, cut_text, decide, whole_millis};
use crate::wire;

/// A busy message is looked at again after this long, then after twice as long each time, up to the longest and never past the end of
/// the owner's lease: most owners are done long before.
const FIRST_BUSY: Duration = Duration::from_millis(200);
const LONGEST_BUSY: Duration = Duration::from_secs(10);

/// Whether a step is in the record.
pub(super) enum Recorded {
    Yes,
    /// Somebody else owns the message now.
    Refused,
    /// The store did not answer before the grace period ended.
    Unknown,
}

impl Pipeline {
    /// `complete`, then the effects, then ack. Before `complete` a crash runs the handler again; after it the redelivery is a duplicate.
    pub(crate) async fn succeed(&self, mut flight: Box<InFlight>, ran: Ran, elapsed: Duration, effects: Effects) {
        match self.record(&mut flight, Step::Complete).await {
            Recorded::Yes => {}
            Recorded::Refused => return Box::pin(self.hand_back_later(flight, Duration::ZERO)).await,
            Recorded::Unknown => return self.give_back(flight).await,
        }
        self.done(flight, ran, elapsed, effects).await;
    }

    /// The success is recorded.
    pub(super) async fn done(&self, flight: Box<InFlight>, ran: Ran, elapsed: Duration, effects: Effects) {
        self.run_effects(&flight, effects).await;
        let kind = if ran == Ran::Skipped { EventKind::Skipped } else { EventKind::Processed { elapsed } };
        self.acknowledge(flight, kind);
    }

    /// Each effect may take as long as a run; what it comes to changes nothing any more.
    async fn run_effects(&self, flight: &InFlight, effects: Effects) {
        for effect in effects.take() {
            let problem = match tokio::time::timeout(self.spec.timeout, AssertUnwindSafe(effect).catch_unwind()).await {
                Ok(Ok(())) => continue,
                Ok(Err(_panic)) => "panicked",
                Err(_elapsed) => "took longer than a run may and was dropped",
            };
            tracing::error!(queue = self.spec.queue, message_id = flight.message_id(), "a staged effect {problem}");
        }
    }

    /// What follows a failed run.
    pub(crate) async fn fail(&self, mut flight: Box<InFlight>, failure: Failure) {
        if self.is_for_letters() {
            return self.keep_letter(flight, &failure).await;
        }
        // As exact as the times in the headers, or a retry that is due just when `within` ends would be taken for late.
        let now = whole_millis(self.broker.now());
        flight.progress.failed(now, &failure.error);
        match decide(self.spec.retry.as_ref(), &flight.progress, failure.retry, now, fastrand::f64()) {
            Next::Retry { delay, counted } => self.retry(flight, failure, delay, counted).await,
            Next::Dead(reason) => self.die(flight, reason, failure.error).await,
        }
    }

    /// The copy, confirmed; then `release`; then ack. A crash after the copy leaves two copies, of which the turns let one run; a crash
    /// before it leaves the delivery, which runs again.
    async fn retry(&self, mut flight: Box<InFlight>, failure: Failure, delay: Duration, counted: bool) {
        let next = flight.progress.next(counted);
        let mut message = self.copy(&flight, &next);
        if !fit_copy(&mut message, self.broker.frame_max()) {
            return self.die(flight, Reason::OversizedHeaders, failure.error).await;
        }
        let lost = flight.lost();
        match self.courier.deliver(Destination::Hold(delay), &message, &flight.delivery.receipt, [&lost, &self.stop.force]).await
        {
            Ok(()) => {}
            Err(GaveUp) if lost.is_cancelled() => return self.hand_back_later(flight, Duration::ZERO).await,
            Err(GaveUp) => return self.hand_back_now(flight).await,
        }
        match self.record(&mut flight, Step::Release { next: next.turn() }).await {
            Recorded::Yes => {
                self.log_retry(&flight, &failure, delay, counted);
                self.acknowledge(flight, EventKind::Retried { delay, counted, error: &failure.error });
            }
            Recorded::Refused => self.hand_back_later(flight, Duration::ZERO).await,
            // The copy is out; the delivery, should it come again, is an older turn.
            Recorded::Unknown => self.give_back(flight).await,
        }
    }

    fn log_retry(&self, flight: &InFlight, failure: &Failure, delay: Duration, counted: bool) {
        let (queue, message_id) = (self.spec.queue, flight.message_id());
        let (error, delay) = (logged(&failure.error), humantime::format_duration(delay));
        if counted {
            let attempt = self.attempt(&flight.progress);
            tracing::info!(queue, message_id, error, "failed, retry {} of {} in {delay}", attempt.retries + 1, attempt.max);
        } else {
            tracing::info!(queue, message_id, error, "failed, uncounted retry in {delay}");
        }
    }

    /// `condemn`, then the letter. A crash in between leaves a record that owes the letter, and whoever comes next sends it without
    /// running the handler.
    pub(crate) async fn die(&self, mut flight: Box<InFlight>, reason: Reason, error: ErrorText) {
        if self.is_for_letters() {
            let failure = Failure { retry: crate::retry::Retry::Retryable, error };
            return self.keep_letter(flight, &failure).await;
        }
        let death = Death::new(&reason, error, self.broker.now());
        let lease = self.ledger.as_ref().map_or(Duration::ZERO, |ledger| ledger.spec().lease);
        match self.record(&mut flight, Step::Condemn { error: death.to_record(), lease }).await {
            Recorded::Yes => self.send_letter(flight, death).await,
            Recorded::Refused => self.hand_back_later(flight, Duration::ZERO).await,
            Recorded::Unknown => self.give_back(flight).await,
        }
    }

    /// The letter, confirmed; then `lettered`; then ack. A crash after the letter may make a second one.
    pub(crate) async fn send_letter(&self, mut flight: Box<InFlight>, death: Death) {
        let message = letter(&flight.delivery, &flight.progress, &death, self.spec, self.broker.frame_max());
        let lost = flight.lost();
        let receipt = &flight.delivery.receipt;
        match self.courier.deliver(Destination::DeadLetters, &message, receipt, [&lost, &self.stop.force]).await {
            Ok(()) => {}
            Err(GaveUp) if lost.is_cancelled() => return self.hand_back_later(flight, Duration::ZERO).await,
            Err(GaveUp) => return self.leave_letter(flight).await,
        }
        let reason = death.reason();
        match self.record(&mut flight, Step::Lettered).await {
            Recorded::Yes => {
                tracing::warn!(
                    queue = self.spec.queue,
                    message_id = flight.message_id(),
                    %reason,
                    runs = message.headers.get(wire::RUNS).and_then(HeaderValue::as_i64),
                    error = logged(&death.error),
                    "dead-lettered to `{}`", self.spec.dead_letter_place().queue
                );
                self.acknowledge(flight, EventKind::DeadLettered { reason: &reason, error: &death.error });
            }
            Recorded::Refused => self.hand_back_later(flight, Duration::ZERO).await,
            Recorded::Unknown => self.give_back(flight).await,
        }
    }

    /// A letter whose consumer failed comes again later, as often as it takes: a letter never becomes a letter.
    async fn keep_letter(&self, flight: Box<InFlight>, failure: &Failure) {
        let mut next = Progress { retries: flight.progress.retries.saturating_add(1), ..Progress::default() };
        next.generation = flight.progress.generation;
        let message = self.copy(&flight, &next);
        let delay = Duration::from_secs(1u64 << next.retries.min(9)).min(Duration::from_secs(300)).min(LONGEST_DELAY);
        tracing::error!(
            queue = self.spec.queue,
            message_id = flight.message_id(),
            error = logged(&failure.error),
            "the dead-letter consumer `{}` failed; the letter comes again in {}",
            self.spec.name,
            humantime::format_duration(delay)
        );
        let never = CancellationToken::new();
        let receipt = &flight.delivery.receipt;
        match self.courier.deliver(Destination::Hold(delay), &message, receipt, [&never, &self.stop.force]).await {
            Ok(()) => self.acknowledge(flight, EventKind::Retried { delay, counted: false, error: &failure.error }),
            Err(GaveUp) => self.give_back(flight).await,
        }
    }

    /// The message as it waits for its next run. A letter stays one.
    pub(super) fn copy(&self, flight: &InFlight, next: &Progress) -> Message {
        if !self.is_for_letters() {
            return copy::copy(&flight.delivery, next);
        }
        let mut message = copy::detached(&flight.delivery);
        preserve_broker_death(&mut message.headers, &flight.delivery.message.headers);
        next.write_counts(&mut message.headers);
        message
    }

    /// Comes again after about `left`, uncounted: another worker has the message, or may have it. Never acknowledged without a copy, or
    /// the message is lost when that worker dies.
    pub(crate) async fn hand_back_later(&self, mut flight: Box<InFlight>, left: Duration) {
        // The claim, if there was one, is not ours any more.
        flight.kept = None;
        // As it was delivered: what this run has added does not count.
        let mut progress = self.progress_of(&flight.delivery);
        let patience = (FIRST_BUSY * (1 << progress.busy.min(6))).min(LONGEST_BUSY);
        let delay = left.min(patience).max(FIRST_BUSY / 2);
        progress.busy = progress.busy.saturating_add(1);
        let mut message = self.copy(&flight, &progress);
        if !fit_copy(&mut message, self.broker.frame_max()) {
            tokio::select! { () = tokio::time::sleep(delay) => {}, () = self.stop.drain.cancelled() => {} }
            return self.give_back(flight).await;
        }
        let never = CancellationToken::new();
        let receipt = &flight.delivery.receipt;
        match self.courier.deliver(Destination::Hold(delay), &message, receipt, [&never, &self.stop.force]).await {
            Ok(()) => self.acknowledge(flight, EventKind::Busy { again_in: delay }),
            Err(GaveUp) => self.give_back(flight).await,
        }
    }

    /// Back to the queue at once. The claim is given back first, so that whoever gets the delivery need not wait for its lease.
    pub(crate) async fn hand_back_now(&self, flight: Box<InFlight>) {
        let next = self.progress_of(&flight.delivery).turn();
        self.let_go(&flight, Step::Release { next }).await;
        self.give_back(flight).await;
    }

    /// Back to the queue with the letter still owed. Whoever gets the delivery sends it at once: the lease on it ends here.
    async fn leave_letter(&self, flight: Box<InFlight>) {
        self.let_go(&flight, Step::Renew { lease: Duration::ZERO }).await;
        self.give_back(flight).await;
    }

    /// Gives a claim back before its time, if the store answers.
    pub(super) async fn let_go(&self, flight: &InFlight, step: Step) {
        let hold = flight.kept.as_ref().map(Kept::hold).or(flight.unsure.as_ref());
        let (Some(ledger), Some(hold)) = (&self.ledger, hold) else { return };
        if let Err(error) = ledger.settle_within(Duration::from_secs(1), hold, &step).await {
            tracing::debug!(identity = %hold.identity, "the claim ends with its lease: {error}");
        }
    }

    /// Back to the queue. That is not to be taken for one more death of a process, so a message that counts them goes back as a copy, if
    /// the broker takes that at once.
    pub(crate) async fn give_back(&self, flight: Box<InFlight>) {
        if flight.progress.crashes > 0 && Box::pin(self.copy_back(&flight)).await {
            return self.acknowledge(flight, EventKind::Returned);
        }
        self.end(flight, Settlement::Return, EventKind::Returned);
    }

    pub(crate) fn acknowledge(&self, flight: Box<InFlight>, kind: EventKind<'_>) {
        self.end(flight, Settlement::Ack, kind);
    }

    fn end(&self, flight: Box<InFlight>, settlement: Settlement, kind: EventKind<'_>) {
        if let Some(outcome) = uneventful(&kind) {
            tracing::debug!(queue = self.spec.queue, message_id = flight.message_id(), "{outcome}");
        }
        self.tell(&flight, kind);
        flight.delivery.receipt.settle(settlement);
    }

    /// Records a step, asking until the store answers: what happened has happened, also when the delivery is lost meanwhile, whose next
    /// copy is told apart by the record. Without a claim there is nothing to record.
    pub(super) async fn record(&self, flight: &mut InFlight, step: Step) -> Recorded {
        let Some(ledger) = &self.ledger else { return Recorded::Yes };
        let mut pause = Pause::reconnect();
        let began = Instant::now();
        loop {
            let Some(kept) = &flight.kept else {
                // Boxed, like all that is rare.
                Box::pin(self.record_unsure(ledger, flight, &step)).await;
                return Recorded::Yes;
            };
            let message_id = flight.message_id();
            match ledger.settle(kept.hold(), &step).await {
                Ok(Settled::Applied) => return Recorded::Yes,
                Ok(Settled::Refused) => {
                    let what = step_name(&step);
                    tracing::warn!(
                        queue = self.spec.queue,
                        message_id,
                        "the {what} is not recorded: the claim was lost; the message comes again"
                    );
                    return Recorded::Refused;
                }
                // Asking again is no use, and nobody can claim the message by such a record: what happened stands as it is.
                Err(error @ StoreError::Unusable { .. }) => {
                    tracing::error!(queue = self.spec.queue, message_id, "the {} is not recorded: {error}", step_name(&step));
                    return Recorded::Yes;
                }
                Err(error) if ledger.runs_in_spite_of(&error) && began.elapsed() >= RECORD_PATIENCE => {
                    self.end_without_record(flight, &step, &error);
                    return Recorded::Yes;
                }
                Err(error) => {
                    self.store_failed(&error);
                    tracing::warn!(queue = self.spec.queue, message_id, "the {} is not recorded yet: {error}", step_name(&step));
                }
            }
            let longest = ledger.outage().map_or(Duration::MAX, |_| RECORD_PATIENCE.saturating_sub(began.elapsed()));
            let pause = tokio::time::timeout(pause.step().min(longest), self.stop.force.cancelled());
            if Box::pin(pause).await.is_ok() {
                return Recorded::Unknown;
            }
        }
    }

    /// The store has been away for too long: what happened stands without a record. The claim ends with its lease.
    fn end_without_record(&self, flight: &mut InFlight, step: &Step, error: &StoreError) {
        if let Some(outage) = self.ledger.as_ref().and_then(Ledger::outage) {
            outage.begin(error);
        }
        self.go_without(flight, error, format_args!("the {} is not recorded, a duplicate would run", step_name(step)));
        flight.unsure = flight.kept.take().map(|kept| kept.hold().clone());
    }

    /// Whether a claim was made whose answer was lost is not known. If it was, it is ours to settle, and if not this changes nothing.
    async fn record_unsure(&self, ledger: &Ledger, flight: &InFlight, step: &Step) {
        let Some(hold) = flight.unsure.as_ref().filter(|_| !ledger.outage().is_some_and(Outage::is_on)) else { return };
        let answer = ledger.settle_within(Duration::from_secs(1), hold, step).await;
        tracing::debug!(identity = %hold.identity, "the {} of a run without protection: {answer:?}", step_name(step));
    }
}

/// What a log that tells everything says of an outcome that nobody needs to look at.
fn uneventful(kind: &EventKind<'_>) -> Option<&'static str> {
    match kind {
        EventKind::Processed { .. } => Some("processed"),
        EventKind::Skipped => Some("skipped by the precheck"),
        EventKind::Duplicate => Some("a duplicate: it was processed, or dead-lettered, before"),
        EventKind::Stale => Some("stale: a later copy is waiting"),
        EventKind::Busy { .. } => Some("busy elsewhere: it comes again"),
        EventKind::Returned => Some("handed back"),
        EventKind::Conflict | EventKind::Unguarded { .. } | EventKind::Retried { .. } | EventKind::DeadLettered { .. } => None,
    }
}

/// An error as a line of the log has room for it.
fn logged(error: &ErrorText) -> String {
    let mut text = error.to_string();
    cut_text(&mut text, 2048);
    text
}

/// What a step records.
fn step_name(step: &Step) -> &'static str {
    match step {
        Step::Complete => "success",
        Step::Release { .. } => "retry",
        Step::Condemn { .. } => "failure",
        Step::Lettered => "dead letter",
        Step::Renew { .. } => "lease",
    }
}

/// A copy loses the broker's own death history; a letter that the broker made keeps what that says under our names.
fn preserve_broker_death(headers: &mut Headers, original: &Headers) {
    let death = BrokerDeath::read(original);
    if original.get(wire::ROUTING_KEY).is_none()
        && let (Some(exchange), Some(routing_key)) = (death.exchange, death.routing_key)
    {
        headers.insert(wire::EXCHANGE, exchange);
        headers.insert(wire::ROUTING_KEY, routing_key);
    }
    if original.get(wire::REASON).is_some() {
        return;
    }
    let reason = death.reason.map_or_else(Reason::unknown, |reason| Reason::Broker(reason.to_owned()));
    headers.insert(wire::REASON, reason.to_string());
    if let Some(queue) = death.queue {
        headers.insert(wire::QUEUE, queue);
    }
}
