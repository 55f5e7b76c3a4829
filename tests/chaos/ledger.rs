//! What the workers did, in a file that outlives them: one write for each line, which a SIGKILL does not tear.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use mqguard::idempotency::{Claim, ClaimRequest, Hold, Settled, Step, Store, StoreError, Transactions};

use crate::worker::number;

/// Clones write to the same file.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: Arc<File>,
    process: u32,
}

/// Owners of claims are told apart: two copies of a message may be in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A claim is asked for.
    Ask(String),
    /// Another owner has it.
    Busy(String),
    /// A claim was not granted for another reason, or its end is recorded: this owner holds nothing any more.
    Free(String),
    /// As `Free`, and it is recorded that the message was processed.
    Complete(String),
    /// A run begins, after so many retries.
    Begin(u32),
    /// The run after so many retries failed.
    Failure(u32),
    /// A handler did what it is for.
    Effect,
    /// The guard told that it was processed, which is recorded by then.
    Processed,
    /// The guard told that it has ended, now or earlier.
    Ended,
    /// The guard told that it gave the delivery back, as it does when it lost the connection.
    Returned,
    /// The guard told that it comes again because another owner has it, or may have it: the claim was not granted, or is lost.
    Again,
}

#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Since 1970.
    pub(crate) at: Duration,
    pub(crate) process: u32,
    pub(crate) queue: String,
    pub(crate) message: u32,
    pub(crate) what: What,
}

impl Ledger {
    pub(crate) fn open(path: PathBuf, process: u32) -> Self {
        let file = File::options().create(true).append(true).open(&path).expect("a file");
        Self { path, file: Arc::new(file), process }
    }

    pub(crate) fn write(&self, queue: &str, message: u32, what: What) {
        let at = SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970").as_micros();
        let line = format!("{at} {} {queue} {message} {what}\n", self.process);
        (&*self.file).write_all(line.as_bytes()).expect("it is written");
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(&self.path).expect("the file");
        text.lines().map(|line| line.parse().unwrap_or_else(|()| panic!("not a line: {line}"))).collect()
    }

    /// Grows with each line.
    pub(crate) fn len(&self) -> u64 {
        self.file.metadata().expect("the file").len()
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(owner) => write!(f, "ask {owner}"),
            Self::Busy(owner) => write!(f, "busy {owner}"),
            Self::Free(owner) => write!(f, "free {owner}"),
            Self::Complete(owner) => write!(f, "complete {owner}"),
            Self::Begin(retries) => write!(f, "begin {retries}"),
            Self::Failure(retries) => write!(f, "failure {retries}"),
            Self::Effect => f.write_str("effect -"),
            Self::Processed => f.write_str("processed -"),
            Self::Ended => f.write_str("ended -"),
            Self::Returned => f.write_str("returned -"),
            Self::Again => f.write_str("again -"),
        }
    }
}

impl FromStr for Line {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let [at, process, queue, message, what, detail] = line.split(' ').collect::<Vec<_>>().try_into().map_err(drop)?;
        let parse = |text: &str| text.parse::<u32>().map_err(drop);
        let what = match what {
            "ask" => What::Ask(detail.into()),
            "busy" => What::Busy(detail.into()),
            "free" => What::Free(detail.into()),
            "complete" => What::Complete(detail.into()),
            "begin" => What::Begin(parse(detail)?),
            "failure" => What::Failure(parse(detail)?),
            "effect" => What::Effect,
            "processed" => What::Processed,
            "ended" => What::Ended,
            "returned" => What::Returned,
            "again" => What::Again,
            _ => return Err(()),
        };
        let at = Duration::from_micros(at.parse().map_err(drop)?);
        Ok(Self { at, process: parse(process)?, queue: queue.into(), message: parse(message)?, what })
    }
}

/// A store whose claims are in the ledger, so that it is known which were held at a kill.
#[derive(Debug)]
pub(crate) struct Watched {
    store: Arc<dyn Store>,
    ledger: Ledger,
}

impl Watched {
    pub(crate) fn new(store: Arc<dyn Store>, ledger: &Ledger) -> Self {
        Self { store, ledger: ledger.clone() }
    }
}

#[async_trait]
impl Store for Watched {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let (queue, message) = (request.identity.consumer(), number(request.identity.message_id()));
        let owner = request.owner.to_string();
        self.ledger.write(queue, message, What::Ask(owner.clone()));
        let answer = self.store.claim(request).await;
        let what = match answer {
            Ok(Claim::Granted { .. } | Claim::Letter { .. }) | Err(_) => return answer,
            Ok(Claim::Busy { .. }) => What::Busy(owner),
            Ok(_) => What::Free(owner),
        };
        self.ledger.write(queue, message, what);
        answer
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        let answer = self.store.settle(hold, step).await;
        let owner = hold.owner.to_string();
        let what = match step {
            Step::Complete => What::Complete(owner),
            // The first of two steps to a letter: it is still held.
            Step::Renew { .. } | Step::Condemn { .. } => return answer,
            _ => What::Free(owner),
        };
        if answer == Ok(Settled::Applied) {
            self.ledger.write(hold.identity.consumer(), number(hold.identity.message_id()), what);
        }
        answer
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.store.ping().await
    }

    async fn warnings(&self) -> Result<Vec<String>, StoreError> {
        self.store.warnings().await
    }

    fn needs_purging(&self) -> bool {
        self.store.needs_purging()
    }

    async fn purge(&self) -> Result<u64, StoreError> {
        self.store.purge().await
    }

    fn transactions(&self) -> Option<Arc<dyn Transactions>> {
        self.store.transactions()
    }
}
