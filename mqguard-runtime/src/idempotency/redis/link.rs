//! The one connection of a store: opened when it is first needed, and anew after it was lost.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, ServerErrorKind, Value};
use tokio::time::timeout;

use super::super::backoff::Backoff;
use super::super::batch::Backend;
use super::super::contract::StoreError;
use super::answer::{self, Answer};
use super::entry::Entry;
use super::error::{is_read_only, of_server};
use super::script::{Call, Request};
use super::target::Target;
use crate::tls;

/// How long opening a connection may take, the login included.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the answers to a batch may take.
const RESPONSE: Duration = Duration::from_secs(5);
pub(super) struct Link {
    target: Target,
    open: Option<MultiplexedConnection>,
    backoff: Backoff,
}

impl Link {
    pub(super) fn new(target: Target) -> Self {
        Self { target, open: None, backoff: Backoff::default() }
    }

    async fn connection(&mut self) -> Result<MultiplexedConnection, StoreError> {
        if let Some(open) = &self.open {
            return Ok(open.clone());
        }
        self.backoff.check()?;
        let opened = match timeout(CONNECT, connect(&self.target)).await {
            Ok(opened) => opened,
            Err(_) => {
                let (target, seconds) = (&self.target, CONNECT.as_secs());
                Err(StoreError::Unavailable(format!("cannot connect to redis at {target}: no answer within {seconds} s")))
            }
        };
        match opened {
            Ok(connection) => {
                self.backoff.connected();
                Ok(self.open.insert(connection).clone())
            }
            Err(why) => {
                self.backoff.failed(&why);
                Err(why)
            }
        }
    }

    /// The answers of the server, one for each command.
    async fn send(&mut self, commands: &Pipeline) -> Result<Vec<Value>, StoreError> {
        let reused = self.open.is_some();
        let mut connection = self.connection().await?;
        let mut answers = answers(&mut connection, commands).await;
        if reused && matches!(answers, Err(Lost::Closed(_))) {
            // That an idle connection was closed long ago is found out by using it. Each question may be asked twice.
            self.open = None;
            connection = self.connection().await?;
            answers = self::answers(&mut connection, commands).await;
        }
        answers.map_err(|lost| {
            self.open = None;
            StoreError::Unavailable(format!("lost the connection to redis at {}: {lost}", self.target))
        })
    }

    async fn exchange(&mut self, requests: &[Request<'_>]) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let mut pipeline = Pipeline::with_capacity(requests.len());
        for request in requests {
            pipeline.add_command(request.command(false));
        }
        let mut answers: Vec<_> = self.send(&pipeline).await?.into_iter().map(Ok).collect();

        // A server that was restarted, or told to forget, has run nothing of these: they are sent again, the first of each with
        // its script.
        let unknown: Vec<usize> = (0..requests.len()).filter(|&at| answers[at].as_ref().is_ok_and(is_no_script)).collect();
        if !unknown.is_empty() {
            pipeline.clear();
            for (nth, &at) in unknown.iter().enumerate() {
                let known = unknown[..nth].iter().any(|&earlier| requests[earlier].is_like(&requests[at]));
                pipeline.add_command(requests[at].command(!known));
            }
            match self.send(&pipeline).await {
                Ok(values) => unknown.into_iter().zip(values).for_each(|(at, value)| answers[at] = Ok(value)),
                Err(why) => unknown.into_iter().for_each(|at| answers[at] = Err(why.clone())),
            }
        }
        Ok(answers)
    }
}

impl Backend for Link {
    type Question = Call;
    type Answer = Answer;

    /// First all steps in one command, and each claim in one of its own: that is enough for a message that comes once. The claims that
    /// meet a record take a second round. Who asks at the same time cannot tell in which order it was.
    async fn answer(&mut self, calls: Vec<Call>) -> Vec<Result<Answer, StoreError>> {
        let steps: Vec<&Entry> = calls.iter().filter_map(Call::step).collect();
        let batch = (!steps.is_empty()).then_some(Request::Batch(&steps));
        let requests: Vec<Request<'_>> = batch.into_iter().chain(calls.iter().filter_map(Call::request)).collect();
        let mut values = match self.exchange(&requests).await {
            Ok(values) => values.into_iter(),
            Err(why) => return calls.iter().map(|_| Err(why.clone())).collect(),
        };
        let batch = if steps.is_empty() { None } else { values.next() };
        let mut of_steps = batch.map(|value| answer::of_batch(&steps, value)).into_iter().flatten();
        let mut of_others = requests.iter().filter(|request| !request.is_batch()).zip(values).map(answer::of_other);
        let mut next = |call: &Call| if call.step().is_some() { of_steps.next() } else { of_others.next() };
        let mut answers: Vec<_> = calls.iter().map(|call| next(call).unwrap_or_else(|| Err(answer::missing()))).collect();
        self.look_into_records(&calls, &mut answers).await;
        if answers.iter().filter_map(|answer| answer.as_ref().err()).any(is_read_only) {
            // The master has become a replica: its name may stand for another server by now.
            self.open = None;
        }
        answers
    }
}

impl Link {
    /// Answers the claims that met a record.
    async fn look_into_records(&mut self, calls: &[Call], answers: &mut [Result<Answer, StoreError>]) {
        let (claims, met): (Vec<&Entry>, Vec<_>) = calls
            .iter()
            .zip(answers)
            .filter(|(_, answer)| **answer == Ok(Answer::Met))
            .filter_map(|(call, answer)| Some((call.entry()?, answer)))
            .unzip();
        if claims.is_empty() {
            return;
        }
        let values = self.exchange(&[Request::Batch(&claims)]).await;
        let value = values.and_then(|mut values| values.pop().unwrap_or_else(|| Err(answer::missing())));
        for (answer, of_claim) in met.into_iter().zip(answer::of_batch(&claims, value)) {
            *answer = of_claim;
        }
    }
}

/// Why there are no answers.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("{0}")]
    Closed(RedisError),
    #[error("{0}")]
    Broken(RedisError),
    #[error("some answers are missing")]
    Short,
    #[error("no answer within {} s", RESPONSE.as_secs())]
    Late,
}

async fn answers(connection: &mut MultiplexedConnection, commands: &Pipeline) -> Result<Vec<Value>, Lost> {
    match timeout(RESPONSE, connection.send_packed_commands(commands, 0, commands.len())).await {
        Ok(Ok(values)) if values.len() == commands.len() => Ok(values),
        Ok(Ok(_)) => Err(Lost::Short),
        Ok(Err(error)) if error.is_connection_dropped() => Err(Lost::Closed(error)),
        Ok(Err(error)) => Err(Lost::Broken(error)),
        Err(_) => Err(Lost::Late),
    }
}

async fn connect(target: &Target) -> Result<MultiplexedConnection, StoreError> {
    let unreachable = |error: RedisError| match tls::refusal(&error) {
        Some(refusal) => StoreError::Refused(format!("redis at {target}: {refusal}")),
        None => StoreError::Unavailable(format!("cannot connect to redis at {target}: {error}")),
    };
    #[cfg(feature = "tls")]
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Without one the TLS library panics when it is compiled with several, or with none, of them.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let client = target.info().and_then(Client::open).map_err(unreachable)?;
    // Both are bounded by the callers.
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.map_err(unreachable)?;
    for command in target.greeting() {
        match connection.send_packed_command(&command).await.map_err(unreachable)? {
            Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoPerm) && is_ping(&command) => {}
            Value::ServerError(error) => {
                return Err(match of_server("login", &error) {
                    StoreError::Refused(why) => StoreError::Refused(format!("redis at {target}: {why}")),
                    why => StoreError::Unavailable(format!("cannot connect to redis at {target}: {why}")),
                });
            }
            _ => {}
        }
    }
    Ok(connection)
}

/// The user need not be allowed to ping.
fn is_ping(command: &Cmd) -> bool {
    matches!(command.args_iter().next(), Some(redis::Arg::Simple(b"PING")))
}

fn is_no_script(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript))
}
