use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::context::{Attempt, Context, Origin};
use super::courier::Courier;
use super::extract::States;
use super::handler::{Handler, Prepared, Ran};
use super::isolation::{Isolation, Place};
use super::outcome::{ErrorText, Failure};
use super::poison::{crash_loop, is_suspect};
use super::spec::{ConsumerSpec, FaultRule, MissingId, Role};
use crate::broker::{Broker, Delivery};
use crate::dead_letter::{Death, Reason};
use crate::event::{Event, EventKind, Observers};
use crate::idempotency::{Granted, Hold, Identity, Kept, Ledger, NotGranted, OwedLetter, Session, StoreError};
use crate::retry::{Progress, Retry};
use crate::stop::Stop;

/// The life of one delivery: extract, claim, run, settle. One for each consumer, not generic.
pub(crate) struct Pipeline {
    pub(crate) spec: &'static ConsumerSpec,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) ledger: Option<Ledger>,
    pub(crate) courier: Courier,
    pub(crate) states: Arc<States>,
    pub(crate) observers: Observers,
    pub(crate) stop: Stop,
    pub(crate) isolation: Isolation,
    /// Told when a message has moved to those that run alone.
    pub(crate) quarantined: Notify,
    /// Told when the store could not answer, and what it said: the worker pauses.
    pub(crate) store_down: watch::Sender<String>,
}

/// A delivery on its way, and how far its message has come. Boxed, so that the tasks that pass it on stay small.
pub(crate) struct InFlight {
    pub(crate) delivery: Delivery,
    pub(crate) progress: Progress,
    /// The claim, when there is one.
    pub(crate) kept: Option<Kept>,
    /// A claim that may have been made, when the message runs without one.
    pub(crate) unsure: Option<Hold>,
    /// Deaths that its record tells of.
    pub(crate) crashes: u32,
    /// That it was delivered and not settled before is known, and cannot be kept: its headers have no room for the count.
    pub(crate) is_uncountable: bool,
    /// Where it runs, once it does.
    pub(crate) place: Option<Place>,
}

impl InFlight {
    pub(crate) fn message_id(&self) -> Option<&str> {
        self.delivery.message.properties.message_id.as_deref()
    }

    /// Cancelled when the claim is lost; never when there is none.
    pub(crate) fn lost(&self) -> CancellationToken {
        self.kept.as_ref().map(|kept| kept.lost().clone()).unwrap_or_default()
    }
}

/// What a message is good for.
enum Work {
    Run(Prepared),
    /// The handler never sees it.
    Reject(Reason, ErrorText),
}

/// Why a delivery does not run at once.
enum NotAdmitted {
    /// Another message is alone, or waits for that.
    Now,
    /// A process may have died under it, and nothing tells how often.
    Uncounted,
}

/// Why a run did not end in success.
pub(super) enum NotDone {
    Failed(Failure),
    /// Another worker may have it now.
    LeaseLost,
    /// The grace period is over.
    Aborted,
}

impl Pipeline {
    pub(crate) fn receive(&self, delivery: Delivery) -> Box<InFlight> {
        let progress = self.progress_of(&delivery);
        Box::new(InFlight { delivery, progress, kept: None, unsure: None, crashes: 0, is_uncountable: false, place: None })
    }

    /// How far the message had come when it was delivered.
    pub(crate) fn progress_of(&self, delivery: &Delivery) -> Progress {
        let headers = &delivery.message.headers;
        if self.is_for_letters() { Progress::read(headers) } else { Progress::arriving(headers) }
    }

    /// The usual way, to success, is this future; every other way is boxed: each message pays for the size of its task.
    pub(crate) async fn process(&self, mut flight: Box<InFlight>) {
        let (work, identity) = match self.admit(&mut flight) {
            Ok(admitted) => admitted,
            Err(why) => return Box::pin(self.not_admitted(flight, why)).await,
        };
        // What is rejected is claimed too, so that a duplicate makes no second letter.
        if let (Some(ledger), Some(identity)) = (&self.ledger, identity) {
            match ledger.claim(identity, flight.progress.turn(), &flight.delivery.message.body).await {
                Ok(Granted::Claimed { kept, crashes }) => {
                    flight.kept = Some(kept);
                    flight.crashes = crashes;
                }
                Ok(Granted::Unguarded(why)) => {
                    flight.unsure = why.unsure;
                    self.go_without(&flight, &why.error, format_args!("runs without protection, a duplicate would run too"));
                }
                Err(why) => return Box::pin(self.not_granted(flight, why)).await,
            }
        }
        match work {
            Work::Run(_) if is_suspect(flight.crashes) && !flight.is_alone() => Box::pin(self.run_alone(flight)).await,
            Work::Run(prepared) => self.run(flight, prepared).await,
            Work::Reject(reason, text) => Box::pin(self.die(flight, reason, text)).await,
        }
    }

    /// Gives a delivery its place beside others, and reads it.
    fn admit(&self, flight: &mut InFlight) -> Result<(Work, Option<Identity>), NotAdmitted> {
        if flight.place.is_none() {
            flight.place = Some(self.isolation.try_beside().ok_or(NotAdmitted::Now)?);
        }
        let (work, identity) = self.prepare(flight);
        let has_record = self.ledger.is_some() && identity.is_some();
        if !has_record && matches!(work, Work::Run(_)) && flight.is_suspicious() {
            return Err(NotAdmitted::Uncounted);
        }
        Ok((work, identity))
    }

    async fn not_admitted(&self, mut flight: Box<InFlight>, why: NotAdmitted) {
        match why {
            NotAdmitted::Now => {
                flight.place = tokio::select! {
                    biased;
                    () = self.stop.drain.cancelled() => return self.give_back(flight).await,
                    place = self.isolation.beside() => Some(place),
                };
                self.process(flight).await;
            }
            NotAdmitted::Uncounted => self.count_crashes(flight).await,
        }
    }

    /// Reads the message, and tells what identifies it.
    fn prepare(&self, flight: &InFlight) -> (Work, Option<Identity>) {
        // Decoding, and what names the business key, is the user's code too. A panic over a body comes again with the same body.
        let prepared = catch_unwind(AssertUnwindSafe(|| self.handler.prepare(&flight.delivery.message)));
        let (kind, message) = match prepared {
            Ok(Ok(prepared)) => return self.identify(flight, prepared),
            Ok(Err(error)) => ("undecodable", error.to_string()),
            Err(panic) => ("panic", panic_text(panic.as_ref())),
        };
        // What cannot be read has an identity only when that needs no key from the body.
        let ledger = self.ledger.as_ref().filter(|ledger| !ledger.spec().keyed);
        let identity = ledger.and_then(|ledger| ledger.identity(None, flight.message_id()));
        (Work::Reject(Reason::Undecodable, ErrorText { kind: kind.into(), message, chain: Vec::new() }), identity)
    }

    fn identify(&self, flight: &InFlight, prepared: Prepared) -> (Work, Option<Identity>) {
        let Some(ledger) = &self.ledger else { return (Work::Run(prepared), None) };
        let identity = ledger.identity(prepared.business_key.as_deref(), flight.message_id());
        if identity.is_none() {
            match ledger.spec().missing_id {
                MissingId::Run => {
                    tracing::warn!(queue = self.spec.queue, "a message without id runs unprotected (`missing_id = \"run\"`)");
                }
                MissingId::DeadLetter => {
                    let message = "the message has no id (and no business key) by which a duplicate could be told; \
                                   publish with a message id, or set `missing_id = \"run\"`";
                    let text = ErrorText { kind: "missing-id".into(), message: message.into(), chain: Vec::new() };
                    return (Work::Reject(Reason::MissingId, text), None);
                }
            }
        }
        (Work::Run(prepared), identity)
    }

    async fn not_granted(&self, mut flight: Box<InFlight>, why: NotGranted) {
        match why {
            NotGranted::Duplicate => self.acknowledge(flight, EventKind::Duplicate),
            NotGranted::Stale => self.acknowledge(flight, EventKind::Stale),
            NotGranted::Conflict => {
                tracing::warn!(
                    queue = self.spec.queue,
                    message_id = flight.message_id(),
                    "not processed: another message, with another body, was processed under the same identity"
                );
                self.acknowledge(flight, EventKind::Conflict);
            }
            NotGranted::Busy(left) => self.hand_back_later(flight, left).await,
            NotGranted::Letter(kept, owed) => {
                flight.kept = Some(kept);
                flight.progress.generation = owed.generation;
                let death = self.owed_death(owed);
                self.send_letter(flight, death).await;
            }
            // This one record is damaged; the store works for others.
            NotGranted::Failed(error @ StoreError::Unusable { .. }) => {
                self.fail(flight, Failure::of(Retry::Retryable, error)).await
            }
            NotGranted::Failed(error) => {
                tracing::debug!(queue = self.spec.queue, message_id = flight.message_id(), "{error}; handed back");
                self.store_failed(&error);
                self.hand_back_now(flight).await;
            }
        }
    }

    /// The death of a message whose letter an earlier owner owed.
    fn owed_death(&self, owed: OwedLetter) -> Death {
        let now = self.broker.now();
        match owed.error {
            Some(record) => Death::from_record(&record, now),
            None => {
                let crashes = owed.crashes;
                let message = format!("the process died, or lost its lease, {crashes} times while the message was handled");
                Death::new(&Reason::CrashLoop, crash_loop(message), now)
            }
        }
    }

    /// Tells that a message does without the store.
    pub(crate) fn go_without(&self, flight: &InFlight, error: &StoreError, what: fmt::Arguments<'_>) {
        if let Some(outage) = self.ledger.as_ref().and_then(Ledger::outage) {
            outage.tell(flight.message_id(), format_args!("{what}: {error}"));
        }
        self.tell(flight, EventKind::Unguarded { error });
    }

    /// Has the worker pause, unless messages run all the same.
    pub(crate) fn store_failed(&self, error: &StoreError) {
        if let Some(ledger) = self.ledger.as_ref().filter(|ledger| !ledger.runs_in_spite_of(error)) {
            self.store_down.send_replace(ledger.about(error.clone()).to_string());
        }
    }

    async fn run(&self, flight: Box<InFlight>, prepared: Prepared) {
        if self.spec.idempotent.is_some_and(|spec| spec.transactional) {
            return Box::pin(self.run_in_transaction(flight, prepared)).await;
        }
        let cx = self.context(&flight, None);
        let started = Instant::now();
        match self.run_handler(&flight, prepared, cx.clone()).await {
            Ok(ran) => self.succeed(flight, ran, started.elapsed(), cx.effects()).await,
            Err(why) => Box::pin(self.not_done(flight, why)).await,
        }
    }

    pub(super) async fn not_done(&self, flight: Box<InFlight>, why: NotDone) {
        match why {
            NotDone::Failed(failure) => self.fail(flight, failure).await,
            NotDone::LeaseLost => {
                let why = flight.kept.as_ref().map_or("", |kept| kept.why_lost());
                tracing::warn!(
                    queue = self.spec.queue,
                    message_id = flight.message_id(),
                    "lease lost, {why}: the run is cancelled, the message comes again"
                );
                self.hand_back_later(flight, Duration::ZERO).await;
            }
            NotDone::Aborted => {
                tracing::warn!(
                    queue = self.spec.queue,
                    message_id = flight.message_id(),
                    "the grace period is over: the run is cancelled, the message handed back"
                );
                self.hand_back_now(flight).await;
            }
        }
    }

    pub(super) async fn run_handler(&self, flight: &InFlight, prepared: Prepared, cx: Context) -> Result<Ran, NotDone> {
        let lost = async {
            match &flight.kept {
                Some(kept) => kept.lost().cancelled().await,
                None => std::future::pending().await,
            }
        };
        // The call itself can panic too, not only the future that it returns.
        let run = AssertUnwindSafe(async move { (prepared.run)(cx).await }).catch_unwind();
        let result = tokio::select! {
            biased;
            result = tokio::time::timeout(self.spec.timeout, run) => result,
            () = lost => return Err(NotDone::LeaseLost),
            () = self.stop.force.cancelled() => return Err(NotDone::Aborted),
        };
        let outcome = match result {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(self.panicked(panic.as_ref())),
            Err(_elapsed) => {
                let text = format!("the handler did not end within {}", humantime::format_duration(self.spec.timeout));
                Err(Failure::new(rule(self.spec.on_timeout), "timeout", text))
            }
        };
        outcome.map_err(NotDone::Failed)
    }

    fn panicked(&self, panic: &(dyn Any + Send)) -> Failure {
        Failure::new(rule(self.spec.on_panic), "panic", panic_text(panic))
    }

    pub(super) fn context(&self, flight: &InFlight, session: Option<Session>) -> Context {
        let delivery = &flight.delivery;
        let origin = Origin::of(delivery, self.spec.queue);
        Context::new(
            Arc::clone(&delivery.message),
            origin,
            self.attempt(&flight.progress),
            delivery.redelivered || flight.progress.crashes > 0,
            Arc::clone(&self.states),
            session,
        )
    }

    pub(crate) fn attempt(&self, progress: &Progress) -> Attempt {
        Attempt {
            generation: progress.generation,
            retries: progress.retries,
            deferrals: progress.deferrals,
            max: self.spec.retry.map_or(0, |retry| retry.max),
        }
    }

    pub(crate) fn is_for_letters(&self) -> bool {
        matches!(self.spec.role, Role::DeadLetters { .. })
    }

    pub(crate) fn tell(&self, flight: &InFlight, kind: EventKind<'_>) {
        let event = Event {
            consumer: self.spec.name,
            queue: self.spec.queue,
            message_id: flight.message_id(),
            attempt: self.attempt(&flight.progress),
            kind,
        };
        // Told before the delivery is settled: a panic must not keep it from that.
        if catch_unwind(AssertUnwindSafe(|| self.observers.tell(&event))).is_err() {
            tracing::error!(queue = self.spec.queue, message_id = flight.message_id(), "an observer panicked");
        }
    }
}

fn rule(rule: FaultRule) -> Retry {
    match rule {
        FaultRule::Retry => Retry::Retryable,
        FaultRule::Fatal => Retry::Fatal,
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic whose payload is not text".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<'a, F>(_: impl Fn(&'a Pipeline, Box<InFlight>) -> F) -> usize {
        size_of::<F>()
    }

    /// Each delivery allocates its task and moves it twice: at 14 kB, as it once was, that took an eighth of the time of a consumer.
    #[test]
    fn a_delivery_is_a_small_task() {
        let size = size(|pipeline, flight| pipeline.process(flight));
        assert!(size <= 1024, "{size} bytes");
    }
}
