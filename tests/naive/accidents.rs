//! What happens to one message.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mqguard::idempotency::Store;
use mqguard::testing::{CrashTest, Fault, Invariant, StepKind, Violation};
use mqguard::{Attempt, Guard, Publisher, RetryableError, State, consumer};
use serde::{Deserialize, Serialize};

/// What the handler does.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Act {
    Succeed,
    /// Takes longer than a lease, and succeeds.
    SucceedSlowly,
    FailOnce,
}

#[derive(Debug, thiserror::Error, RetryableError)]
#[error("the payment service does not answer")]
#[retryable]
struct Unavailable;

/// How often the message had its effect.
#[derive(Clone, Default)]
struct Effects(Arc<AtomicU32>);

#[consumer(queue = "charge", retry(max = 3, delay = "5s"), dlq = "dlq.charge", idempotent(store = "redis", lease = "10s"))]
async fn charge(act: Act, attempt: Attempt, effects: State<Effects>) -> Result<(), Unavailable> {
    match act {
        Act::Succeed => {}
        Act::SucceedSlowly => tokio::time::sleep(Duration::from_secs(12)).await,
        Act::FailOnce if attempt.retries == 0 => return Err(Unavailable),
        Act::FailOnce => {}
    }
    effects.0.0.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

/// What becomes of the effect, in the worst case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Once,
    Twice,
    Lost,
}

impl Outcome {
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Twice => "**twice**",
            Self::Lost => "**lost**",
        }
    }

    fn of(violation: &Violation) -> Option<Self> {
        match violation.invariant {
            Invariant::NothingLost => Some(Self::Lost),
            Invariant::Check if violation.detail.contains("2 times") => Some(Self::Twice),
            _ => None,
        }
    }
}

pub(crate) struct Accident {
    pub(crate) what: &'static str,
    /// How many copies of the message come.
    copies: usize,
    act: Act,
    /// None: all goes well.
    faults: &'static [(StepKind, Fault)],
    /// What can be had without a transaction around effect and record.
    pub(crate) best: Outcome,
}

pub(crate) const ACCIDENTS: [Accident; 7] = [
    Accident { what: "two copies come at once", copies: 2, act: Act::SucceedSlowly, faults: &[], best: Outcome::Once },
    Accident { what: "the first run fails, and is retried", copies: 1, act: Act::FailOnce, faults: &[], best: Outcome::Once },
    Accident {
        what: "the process dies before the effect",
        copies: 1,
        act: Act::Succeed,
        faults: &[(StepKind::Claim, Fault::CrashAfter)],
        best: Outcome::Once,
    },
    Accident {
        what: "two copies come at once, and the process dies before the effect",
        copies: 2,
        act: Act::SucceedSlowly,
        faults: &[(StepKind::Claim, Fault::CrashAfter)],
        best: Outcome::Once,
    },
    Accident {
        what: "the process dies between the effect and its record",
        copies: 1,
        act: Act::Succeed,
        faults: &[(StepKind::Complete, Fault::CrashBefore)],
        best: Outcome::Twice,
    },
    Accident {
        what: "the process dies between the record and the acknowledgement",
        copies: 1,
        act: Act::Succeed,
        faults: &[(StepKind::Complete, Fault::CrashAfter)],
        best: Outcome::Once,
    },
    Accident {
        what: "the answer to the claim is lost",
        copies: 1,
        act: Act::Succeed,
        faults: &[(StepKind::Claim, Fault::AnswerLost)],
        best: Outcome::Once,
    },
];

impl Accident {
    /// What becomes of the effect with this store.
    pub(crate) async fn with<S: Store>(&self, store: impl Fn() -> S) -> Outcome {
        let effects = Effects::default();
        let publish = async |publisher: Publisher| {
            for _ in 0..self.copies {
                publisher
                    .json(&self.act)
                    .expect("plain data")
                    .message_id("m-1")
                    .to_queue("charge")
                    .await
                    .expect("it is published");
            }
        };
        let test = CrashTest::new(|guard: Guard| guard.consumer::<charge>().state(effects.clone()))
            .store(store)
            .publish(publish)
            .reset(|| effects.0.store(0, Ordering::SeqCst))
            .check(|| match effects.0.load(Ordering::SeqCst) {
                0 | 1 => Ok(()),
                more => Err(format!("{} times", more.min(2))),
            });
        let report = if self.faults.is_empty() { test.only([]).run().await } else { test.run().await };
        let worst = report.violations().iter().filter(|violation| self.is_of(violation)).filter_map(Outcome::of).max();
        worst.unwrap_or(Outcome::Once)
    }

    /// Whether a schedule has just what makes this accident.
    fn is_of(&self, violation: &Violation) -> bool {
        let happened = violation.faulty_steps().filter_map(|line| Some((line.step?.1, line.fault?)));
        happened.eq(self.faults.iter().copied())
    }
}
