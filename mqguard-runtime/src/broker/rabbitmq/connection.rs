use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use lapin::{Channel, Connection, ConnectionStatus, ErrorKind, Event};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::dial::{Dialled, Socket, dial};
use super::errors;
use super::url::Nodes;
use crate::broker::contract::BrokerError;

/// For one operation that the broker answers at once when it is well.
pub(super) const OPERATION_TIMEOUT: Duration = Duration::from_secs(10);

/// What a connection says about its frames before there is one: RabbitMQ's default.
const DEFAULT_FRAME_MAX: usize = 131_072;

/// What a connection is for. There are two, because the broker stops reading from a connection that publishes when it runs low on memory
/// or disk: acks on the same connection would hang with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Consume,
    Publish,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Consume => "consume",
            Self::Publish => "publish",
        })
    }
}

/// A connection that is opened at first use, and replaced at the next use after it was lost.
pub(super) struct Slot {
    nodes: Arc<Nodes>,
    role: Role,
    current: Mutex<Option<Arc<Link>>>,
    /// Held while connecting, so that one attempt serves all who wait for it. Holds why the last one failed.
    connecting: tokio::sync::Mutex<Option<BrokerError>>,
    attempts: AtomicU64,
    closed: AtomicBool,
    known: AtomicBool,
    frame_max: AtomicUsize,
}

impl Slot {
    pub(super) fn new(nodes: Arc<Nodes>, role: Role) -> Self {
        Self {
            nodes,
            role,
            current: Mutex::new(None),
            connecting: tokio::sync::Mutex::new(None),
            attempts: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            known: AtomicBool::new(false),
            frame_max: AtomicUsize::new(DEFAULT_FRAME_MAX),
        }
    }

    /// The largest frame as negotiated last, in bytes.
    pub(super) fn frame_max(&self) -> usize {
        self.frame_max.load(Ordering::Relaxed)
    }

    /// Whether there ever was a connection.
    pub(super) fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }

    /// The connection; opens one when there is none that lives.
    pub(super) async fn link(&self) -> Result<Arc<Link>, BrokerError> {
        if let Some(link) = self.living() {
            return Ok(link);
        }
        let seen = self.attempts.load(Ordering::Acquire);
        let mut failure = self.connecting.lock().await;
        if let Some(link) = self.living() {
            return Ok(link);
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(BrokerError::Unavailable("this broker was closed".into()));
        }
        // The attempt that this call waited for failed: its answer is this call's answer too.
        if self.attempts.load(Ordering::Acquire) != seen
            && let Some(error) = &*failure
        {
            return Err(error.clone());
        }
        let outcome = self.connect().await;
        self.attempts.fetch_add(1, Ordering::Release);
        let link = match outcome {
            Ok(link) => link,
            Err(error) => {
                if failure.as_ref() != Some(&error) {
                    tracing::warn!(broker = %self.nodes, connection = %self.role, %error, "cannot connect to RabbitMQ");
                }
                *failure = Some(error.clone());
                return Err(error);
            }
        };
        *failure = None;
        self.frame_max.store(link.frame_max as usize, Ordering::Relaxed);
        self.known.store(true, Ordering::Relaxed);
        self.set(Some(Arc::clone(&link)));
        Ok(link)
    }

    /// Opens a channel, on a new connection if there is none that can have one more.
    pub(super) async fn channel(&self) -> Result<(Arc<Link>, Channel), BrokerError> {
        let link = self.link().await?;
        match link.channel().await {
            Ok(channel) => Ok((link, channel)),
            Err(_) if !link.is_fresh() => {
                let link = self.link().await?;
                let channel = link.channel().await?;
                Ok((link, channel))
            }
            Err(error) => Err(error),
        }
    }

    /// Closes the connection; afterwards everything is answered with `Unavailable`.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let _connecting = self.connecting.lock().await;
        let link = self.current.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(link) = link {
            link.close().await;
        }
    }

    fn living(&self) -> Option<Arc<Link>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone().filter(|link| link.is_fresh())
    }

    fn set(&self, link: Option<Arc<Link>>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = link;
    }

    /// Tries all nodes, starting with a random one, so that many processes spread over a cluster.
    async fn connect(&self) -> Result<Arc<Link>, BrokerError> {
        let count = self.nodes.len();
        let start = fastrand::usize(..count.max(1));
        let mut problems = Vec::new();
        for node in (0..count).map(|n| (start + n) % count) {
            let name = self.nodes.name(node);
            let problem = match timeout(self.nodes.connection_timeout(), dial(&self.nodes, node, self.role)).await {
                Ok(Ok(dialled)) => {
                    tracing::info!(node = %name, connection = %self.role, "connected to RabbitMQ");
                    return Ok(Link::new(dialled, self.role, name));
                }
                // All nodes of a cluster share their users and virtual hosts: another one would say the same.
                Ok(Err(BrokerError::Refused(reason))) => return Err(BrokerError::Refused(format!("{reason} (node {name})"))),
                Ok(Err(BrokerError::Unavailable(reason))) => reason,
                Ok(Err(other)) => other.to_string(),
                Err(_) => format!("no answer within {:?}", self.nodes.connection_timeout()),
            };
            problems.push(format!("{name}: {problem}"));
        }
        Err(BrokerError::Unavailable(problems.join("; ")))
    }
}

/// One connection, as long as it lives.
pub(super) struct Link {
    connection: Connection,
    frame_max: u32,
    /// Whether the client library runs out of channels on it. It never uses the number of a channel again that the broker closed.
    worn: AtomicBool,
    state: Arc<LinkState>,
}

/// What is known about a connection; outlives it.
pub(super) struct LinkState {
    status: ConnectionStatus,
    /// Changes whenever the connection or one of its channels may have ended.
    changes: watch::Sender<u64>,
    /// The broker's reason for not reading what we publish, when it has one.
    blocked: watch::Sender<Option<String>>,
    node: String,
    /// Why the connection was lost.
    lost: Mutex<Option<String>>,
    closing: AtomicBool,
    socket: Socket,
}

impl Link {
    fn new(dialled: Dialled, role: Role, node: String) -> Arc<Self> {
        let Dialled { connection, socket, frame_max } = dialled;
        let state = Arc::new(LinkState {
            status: connection.status().clone(),
            changes: watch::Sender::new(0),
            blocked: watch::Sender::new(None),
            node,
            lost: Mutex::new(None),
            closing: AtomicBool::new(false),
            socket,
        });
        tokio::spawn(watch_events(connection.events_listener(), Arc::clone(&state), role));
        Arc::new(Self { connection, frame_max, worn: AtomicBool::new(false), state })
    }

    pub(super) fn state(&self) -> &Arc<LinkState> {
        &self.state
    }

    pub(super) fn is_open(&self) -> bool {
        self.state.is_open()
    }

    /// Whether it can be used for something new.
    pub(super) fn is_fresh(&self) -> bool {
        self.is_open() && !self.worn.load(Ordering::Relaxed)
    }

    /// Opens a channel.
    pub(super) async fn channel(&self) -> Result<Channel, BrokerError> {
        let deadline = Instant::now() + OPERATION_TIMEOUT;
        loop {
            match timeout_at(deadline, self.connection.create_channel()).await {
                Ok(Ok(channel)) => return Ok(channel),
                // An old error: that of a channel which had the same number. The next number may do, but the connection is wearing out.
                Ok(Err(error)) if errors::reply(&error).is_some() && self.is_open() => self.worn.store(true, Ordering::Relaxed),
                Ok(Err(error)) => {
                    if matches!(error.kind(), ErrorKind::ChannelsLimitReached) {
                        self.worn.store(true, Ordering::Relaxed);
                    }
                    return Err(BrokerError::Unavailable(self.state.reason(&error)));
                }
                Err(_) => return Err(no_answer("opening a channel")),
            }
        }
    }

    async fn close(&self) {
        self.state.closing.store(true, Ordering::Release);
        // A blocked connection does not even send that it closes.
        if !matches!(timeout(OPERATION_TIMEOUT / 2, self.connection.close(200, "OK".into())).await, Ok(Ok(()))) {
            self.state.socket.shut();
        }
        self.state.changed();
    }
}

impl Drop for Link {
    /// Nobody uses it any more: that it closes now is no loss.
    fn drop(&mut self) {
        self.state.closing.store(true, Ordering::Release);
    }
}

impl LinkState {
    pub(super) fn is_open(&self) -> bool {
        self.status.connected()
    }

    /// Told when the connection or one of its channels may have ended.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// What happened: why the connection was lost when it was, what the error says otherwise.
    pub(super) fn reason(&self, error: &lapin::Error) -> String {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match (errors::reply(error), lost) {
            (None, Some(lost)) => lost,
            // Whoever uses the connection may see its end before it is noted.
            (None, None) if !self.is_open() => self.lost_over(&errors::reason(error)),
            _ => errors::reason(error),
        }
    }

    fn lost_over(&self, reason: &str) -> String {
        format!("the connection to {} was lost: {reason}", self.node)
    }

    /// Why the broker does not read what is published on this connection, when it does not.
    pub(super) fn blocked(&self) -> Option<String> {
        if !self.status.blocked() {
            return None;
        }
        Some(self.blocked.borrow().clone().unwrap_or_else(|| "blocked".into()))
    }

    /// Waits until the broker reads again, or the connection is lost.
    pub(super) async fn unblocked(&self) {
        let (mut blocked, mut changes) = (self.blocked.subscribe(), self.changes());
        while self.is_open() && self.status.blocked() {
            tokio::select! {
                _ = blocked.changed() => {}
                _ = changes.changed() => {}
            }
        }
    }
}

/// Follows what happens to a connection, and logs each change of its state once.
async fn watch_events(events: impl StreamExt<Item = Event>, state: Arc<LinkState>, role: Role) {
    tokio::pin!(events);
    let node = &state.node;
    let mut lost = None;
    while let Some(event) = events.next().await {
        match event {
            Event::ConnectionBlocked(reason) => {
                tracing::warn!(%node, connection = %role, %reason, "RabbitMQ blocks publishing: publishes wait");
                state.blocked.send_replace(Some(reason));
            }
            Event::ConnectionUnblocked => {
                tracing::info!(%node, connection = %role, "RabbitMQ lets publishing go on");
                state.blocked.send_replace(None);
            }
            Event::Error(error) => {
                if !state.is_open() {
                    lost = Some(errors::reason(&error));
                    break;
                }
                state.changed();
            }
            _ => {}
        }
    }
    // The event of the first error only: what follows it is of no use.
    let reason = lost.unwrap_or_else(|| "the connection was closed".into());
    if !state.closing.load(Ordering::Acquire) {
        tracing::warn!(%node, connection = %role, %reason, "lost the connection to RabbitMQ");
    }
    *state.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(state.lost_over(&reason));
    state.socket.shut();
    state.changed();
}

/// The error for an answer that did not come in time.
pub(super) fn no_answer(what: &str) -> BrokerError {
    BrokerError::Unavailable(format!("no answer to {what} within {OPERATION_TIMEOUT:?}"))
}

/// Closes a channel without making anybody wait. Left to itself the client library could take the whole connection down over it.
pub(super) fn discard(channel: Channel) {
    if !channel.status().connected() {
        return;
    }
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move { drop(timeout(OPERATION_TIMEOUT, channel.close(200, "OK".into())).await) });
    }
}
