//! The one session of a store that claims and steps go through: opened when it is first needed, and anew after it was lost.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::super::backoff::Backoff;
use super::super::batch::Backend;
use super::super::contract::{Claim, Mode, StoreError};
use super::dialect::{Dialect, Fault};
use super::exchange::{Answer, Answers, Call, Exchange};
use super::failure::{self, fault};
use super::schema;

/// How long opening a session may take, the login and the check of the tables included.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a migration may take, which waits for that of another process.
const MIGRATE: Duration = Duration::from_secs(90);
/// How long the answers to a batch may take.
const RESPONSE: Duration = Duration::from_secs(8);
/// The answer to a claim of a message whose row somebody else's transaction has locked: as if its owner had it for that long, whoever
/// has locked it is about to change it.
const BUSY: Answer = Answer::Claim(Claim::Busy { left: Duration::from_secs(1) });
/// How often locked rows are tried one by one, and the time between.
const PASSES: usize = 3;
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Where a store is, and what it may do there. Not to be shown: the options tell the password.
pub(super) struct Place<D: Dialect> {
    pub(super) options: D::Options,
    pub(super) mode: Mode,
    pub(super) auto_migrate: bool,
    /// Where one writes at a time: whose turn it is.
    pub(super) turns: Option<Arc<Semaphore>>,
}

impl<D: Dialect> Clone for Place<D> {
    fn clone(&self) -> Self {
        Self { options: self.options.clone(), turns: self.turns.clone(), ..*self }
    }
}

impl<D: Dialect> Place<D> {
    pub(super) fn shown(&self) -> String {
        D::shown(&self.options)
    }

    pub(super) fn new(options: D::Options) -> Self {
        let turns = D::ONE_TRANSACTION.then(|| Arc::new(Semaphore::new(1)));
        Self { options, mode: Mode::Unique, auto_migrate: true, turns }
    }

    /// Waits for the right to write, where one does at a time.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(self.turns.as_ref()?).acquire_owned().await.ok()
    }

    /// A new session with tables that can be used.
    pub(super) async fn connect(&self) -> Result<D::Connection, StoreError> {
        let place = self.shown();
        let late =
            |limit: Duration| StoreError::Unavailable(format!("{} at {place}: no answer within {} s", D::NAME, limit.as_secs()));
        let opening = async {
            let mut connection = D::connect(&self.options).await.map_err(|error| failure::of::<D>(&error, &place))?;
            let is_old = schema::is_old::<D>(&mut connection, self.auto_migrate, &place).await?;
            Ok((connection, is_old))
        };
        let (mut connection, is_old) = timeout(CONNECT, opening).await.map_err(|_| late(CONNECT))??;
        if is_old {
            timeout(MIGRATE, schema::migrate::<D>(&mut connection, &place)).await.map_err(|_| late(MIGRATE))??;
        }
        Ok(connection)
    }
}

pub(super) struct Link<D: Dialect> {
    place: Place<D>,
    open: Option<D::Connection>,
    backoff: Backoff,
}

/// Why there are questions without an answer.
enum Failure {
    /// One of them is to blame.
    Of(sqlx::Error),
    All(StoreError),
}

impl<D: Dialect> Link<D> {
    pub(super) fn new(place: Place<D>) -> Self {
        Self { place, open: None, backoff: Backoff::default() }
    }

    /// Takes the session; who does not lose it puts it back.
    async fn session(&mut self) -> Result<D::Connection, StoreError> {
        if let Some(open) = self.open.take() {
            return Ok(open);
        }
        self.backoff.check()?;
        let connected = self.place.connect().await;
        match &connected {
            Ok(_) => self.backoff.connected(),
            Err(why) => self.backoff.failed(why),
        }
        connected
    }

    /// Asks once. A session in an unknown state, or that is late, is dropped: the server ends what it was at.
    async fn ask_once(&mut self, exchange: &mut Exchange<'_>, asked: &[usize], end: Instant) -> Result<(), Failure> {
        let _turn = timeout_at(end, self.place.turn()).await.map_err(|_| Failure::All(self.late()))?;
        let mut connection = self.session().await.map_err(Failure::All)?;
        let done = timeout_at(end, exchange.run::<D>(&mut connection, asked)).await;
        if D::ONE_TRANSACTION && !matches!(done, Ok(Ok(()))) {
            exchange.forget(asked);
        }
        let done = done.map_err(|_| Failure::All(self.late()))?;
        if done.as_ref().err().map(fault::<D>).is_none_or(Fault::leaves_the_session_usable) {
            self.open = Some(connection);
        }
        done.map_err(Failure::Of)
    }

    /// Asks until there are answers, or a reason why there are none.
    async fn ask(&mut self, exchange: &mut Exchange<'_>, asked: &[usize], end: Instant) -> Result<(), Failure> {
        let mut may_be_lost = true;
        loop {
            let error = match self.ask_once(exchange, asked, end).await {
                Err(Failure::Of(error)) => error,
                done => return done,
            };
            match fault::<D>(&error) {
                Fault::Again if Instant::now() < end => pause().await,
                // That an idle session was closed long ago is found out by using it. Each question may be asked twice.
                Fault::Lost if may_be_lost => may_be_lost = false,
                Fault::Locked | Fault::Row => return Err(Failure::Of(error)),
                _ => return Err(Failure::All(failure::of::<D>(&error, &self.place.shown()))),
            }
        }
    }

    async fn ask_all(&mut self, calls: &[Call]) -> Answers {
        let end = Instant::now() + RESPONSE;
        let mut exchange = Exchange::new(self.place.mode, calls);
        let all = exchange.open();
        match self.ask(&mut exchange, &all, end).await {
            Err(Failure::All(why)) => return exchange.finish(&Err(why)),
            Err(Failure::Of(error)) if calls.len() == 1 || is_about_all::<D>(&error) => {
                exchange.open().into_iter().for_each(|nth| exchange.set(nth, self.of_one(&calls[nth], &error)));
            }
            Err(Failure::Of(_)) => self.ask_each(&mut exchange, end).await,
            // Some that others change all the time may be left.
            Ok(()) if calls.len() > 1 => self.ask_each(&mut exchange, end).await,
            Ok(()) => {}
        }
        exchange.finish(&Err(StoreError::Unavailable("the record is changed by others all the time".into())))
    }

    /// One after the other, so that what is wrong with one is not the others' loss. A lock is not waited for any more, there may be
    /// many; instead it is looked again a little later whether it is gone.
    async fn ask_each(&mut self, exchange: &mut Exchange<'_>, end: Instant) {
        for pass in 1..=PASSES {
            let open = exchange.open();
            if open.is_empty() {
                break;
            }
            if pass == 1 {
                self.wait_for_locks(false).await
            } else {
                sleep(LOOK_AGAIN).await
            }
            for nth in open {
                if exchange.is_answered(nth) {
                    continue;
                }
                self.ask_one(exchange, nth, pass == PASSES, end).await;
            }
        }
        self.wait_for_locks(true).await;
    }

    async fn ask_one(&mut self, exchange: &mut Exchange<'_>, nth: usize, is_last: bool, end: Instant) {
        let call = exchange.call(nth);
        if Instant::now() >= end {
            // There was no time to ask: whoever has locked the others may have this one too.
            let answer = if let Call::Claim(_) = call { Ok(BUSY) } else { Err(self.late()) };
            return exchange.set(nth, answer);
        }
        match self.ask(exchange, &[nth], end).await {
            Ok(()) => {}
            Err(Failure::Of(error)) if fault::<D>(&error) == Fault::Locked && !is_last => {}
            Err(Failure::Of(error)) => exchange.set(nth, self.of_one(call, &error)),
            Err(Failure::All(why)) => exchange.set(nth, Err(why)),
        }
    }

    /// A session that does not do so is dropped.
    async fn wait_for_locks(&mut self, wait: bool) {
        let Some(mut connection) = self.open.take() else { return };
        if matches!(timeout(CONNECT, D::wait_for_locks(&mut connection, wait)).await, Ok(Ok(()))) {
            self.open = Some(connection);
        }
    }

    /// What an error means to who asked alone.
    fn of_one(&self, call: &Call, error: &sqlx::Error) -> Result<Answer, StoreError> {
        match (fault::<D>(error), call, call.key()) {
            (Fault::Locked, Call::Claim(_), _) => Ok(BUSY),
            (Fault::Row, _, Some(key)) => Err(StoreError::Unusable { key: key.shown(), reason: error.to_string() }),
            _ => Err(failure::of::<D>(error, &self.place.shown())),
        }
    }

    fn late(&self) -> StoreError {
        StoreError::Unavailable(format!("{} at {}: no answer within {} s", D::NAME, self.place.shown(), RESPONSE.as_secs()))
    }
}

/// Whether asking one by one would not help.
fn is_about_all<D: Dialect>(error: &sqlx::Error) -> bool {
    D::ONE_TRANSACTION && fault::<D>(error) == Fault::Locked
}

/// Lets the one that was faster get on.
fn pause() -> impl Future<Output = ()> {
    sleep(Duration::from_millis(fastrand::u64(1..20)))
}

impl<D: Dialect> Backend for Link<D> {
    type Question = Call;
    type Answer = Answer;

    async fn answer(&mut self, calls: Vec<Call>) -> Answers {
        self.ask_all(&calls).await
    }
}
