//! The one session of a store that claims and steps go through: opened when it is first needed, and anew after it was lost.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions as _;
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
/// When a message is asked for again whose row somebody else's transaction has locked.
const LOCKED: Duration = Duration::from_secs(1);

/// Where a store is, and what it may do there.
#[derive(Debug)]
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
        let turns = D::ONE_WRITER.then(|| Arc::new(Semaphore::new(1)));
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
        let connected = timeout(CONNECT, open::<D>(&self.options)).await.map_err(|_| late(CONNECT))?;
        let mut connection = connected.map_err(|error| failure::of::<D>(&error, &place))?;
        let checked = schema::check::<D>(&mut connection, self.auto_migrate, &place);
        timeout(MIGRATE, checked).await.map_err(|_| late(MIGRATE))??;
        Ok(connection)
    }
}

async fn open<D: Dialect>(options: &D::Options) -> sqlx::Result<D::Connection> {
    let mut connection = options.connect().await?;
    D::prepare(&mut connection).await?;
    D::impatient(&mut connection).await?;
    Ok(connection)
}

pub(super) struct Link<D: Dialect> {
    place: Place<D>,
    open: Option<D::Connection>,
    backoff: Backoff,
}

/// Why a batch has no answers.
enum Lost {
    /// The session could not be opened.
    NoSession(StoreError),
    Late,
    Failed(sqlx::Error),
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

    /// Asks once. A session that is lost or late is dropped: the server ends what it was at.
    async fn ask(&mut self, calls: &[Call], end: Instant) -> Result<Answers, Lost> {
        let mut connection = self.session().await.map_err(Lost::NoSession)?;
        let _turn = self.place.turn().await;
        let Ok(answers) = timeout_at(end, Exchange::new(self.place.mode, calls).run::<D>(&mut connection)).await else {
            return Err(Lost::Late);
        };
        match answers {
            Err(error) if fault::<D>(&error) == Fault::Lost => Err(Lost::Failed(error)),
            answers => {
                self.open = Some(connection);
                answers.map_err(Lost::Failed)
            }
        }
    }

    /// Asks until there are answers, or a reason why there are none for any of the questions.
    async fn ask_all(&mut self, calls: &[Call]) -> Result<Answers, StoreError> {
        let end = Instant::now() + RESPONSE;
        let mut reused = self.open.is_some();
        loop {
            let error = match self.ask(calls, end).await {
                Ok(answers) => return Ok(answers),
                Err(Lost::NoSession(why)) => return Err(why),
                Err(Lost::Late) => return Err(self.late()),
                Err(Lost::Failed(error)) => error,
            };
            match fault::<D>(&error) {
                Fault::Again if Instant::now() < end => pause().await,
                // That an idle session was closed long ago is found out by using it. Each question may be asked twice.
                Fault::Lost if reused => reused = false,
                Fault::Locked | Fault::Row if calls.len() > 1 => return Ok(self.ask_each(calls, end).await),
                Fault::Locked | Fault::Row => return Ok(vec![self.of_one(&calls[0], &error)]),
                _ => return Err(failure::of::<D>(&error, &self.place.shown())),
            }
        }
    }

    /// One after the other, so that what is wrong with one is not the others' loss.
    async fn ask_each(&mut self, calls: &[Call], end: Instant) -> Answers {
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            let one = std::slice::from_ref(call);
            let asked: Result<Answers, StoreError> = loop {
                break match self.ask(one, end).await {
                    Ok(answers) => Ok(answers),
                    Err(Lost::NoSession(why)) => Err(why),
                    Err(Lost::Late) => Err(self.late()),
                    Err(Lost::Failed(error)) => match fault::<D>(&error) {
                        Fault::Again if Instant::now() < end => {
                            pause().await;
                            continue;
                        }
                        _ => Ok(vec![self.of_one(call, &error)]),
                    },
                };
            };
            answers.push(asked.and_then(|mut answers| answers.pop().unwrap_or_else(|| Err(self.late()))));
        }
        answers
    }

    /// What an error means to who asked alone.
    fn of_one(&self, call: &Call, error: &sqlx::Error) -> Result<Answer, StoreError> {
        match (fault::<D>(error), call, call.key()) {
            // As if its owner had it for that long: whoever has locked it is about to change it.
            (Fault::Locked, Call::Claim(_), _) => Ok(Answer::Claim(Claim::Busy { left: LOCKED })),
            (Fault::Row, _, Some(key)) => Err(StoreError::Unusable { key: key.shown(), reason: error.to_string() }),
            _ => Err(failure::of::<D>(error, &self.place.shown())),
        }
    }

    fn late(&self) -> StoreError {
        StoreError::Unavailable(format!("{} at {}: no answer within {} s", D::NAME, self.place.shown(), RESPONSE.as_secs()))
    }
}

/// Lets the one that was faster get on.
fn pause() -> impl Future<Output = ()> {
    sleep(Duration::from_millis(fastrand::u64(1..20)))
}

impl<D: Dialect> Backend for Link<D> {
    type Question = Call;
    type Answer = Answer;

    async fn answer(&mut self, calls: Vec<Call>) -> Answers {
        self.ask_all(&calls).await.unwrap_or_else(|why| calls.iter().map(|_| Err(why.clone())).collect())
    }
}
