use std::fmt;
use std::time::Duration;

use super::fault::Fault;
use crate::idempotency::Step;

/// What a process asks of the broker or the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepKind {
    /// Queues and exchanges are declared.
    Declare,
    /// A subscription begins.
    Consume,
    /// A message is published: a retry copy, a letter, or what a handler publishes by the guard's publisher.
    Publish,
    /// A delivery is acknowledged or handed back.
    Settlement,
    /// The store is asked whether it is there.
    Ping,
    /// A claim.
    Claim,
    /// [`Step::Complete`].
    Complete,
    /// [`Step::Release`].
    Release,
    /// [`Step::Condemn`].
    Condemn,
    /// [`Step::Lettered`].
    Lettered,
    /// [`Step::Renew`].
    Renew,
}

impl From<&Step> for StepKind {
    fn from(step: &Step) -> Self {
        match step {
            Step::Complete => Self::Complete,
            Step::Release { .. } => Self::Release,
            Step::Condemn { .. } => Self::Condemn,
            Step::Lettered => Self::Lettered,
            Step::Renew { .. } => Self::Renew,
        }
    }
}

/// One line of what happened in a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceLine {
    /// The number and kind of the step, from 1; `None` for what is not a step, such as a delivery.
    pub step: Option<(usize, StepKind)>,
    /// Virtual time since the schedule began.
    pub at: Duration,
    /// Which process, from 1.
    pub process: u32,
    /// What it was: `publish to q.retry.5s of m-1`.
    pub what: String,
    /// What came of it; empty while nothing has.
    pub outcome: String,
    /// What went wrong at it.
    pub fault: Option<Fault>,
}

impl fmt::Display for TraceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.step.map(|(number, _)| number.to_string()).unwrap_or_default();
        write!(f, "{number:>5} {:>10.3}s p{} {}", self.at.as_secs_f64(), self.process, self.what)?;
        if !self.outcome.is_empty() {
            write!(f, " -> {}", self.outcome)?;
        }
        match self.fault {
            Some(fault) => write!(f, "  <== {fault:?}"),
            None => Ok(()),
        }
    }
}
