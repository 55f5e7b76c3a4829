use std::fmt;

use super::step::StepKind;

/// What goes wrong at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The process dies before the step has its effect.
    CrashBefore,
    /// The process dies after the effect, before it learns of it.
    CrashAfter,
    /// The connection to the broker is lost before the effect: the broker takes the unsettled deliveries back. A publish or a settlement
    /// that was under way has no effect. The process goes on.
    ConnectionLostBefore,
    /// The connection to the broker is lost after the effect. A publish that was under way does not learn of it.
    ConnectionLostAfter,
    /// The request does not arrive: no effect, and the process is told that the other side is not available.
    RequestLost,
    /// The answer does not arrive: the step has its effect, and the process is told that this is not known.
    AnswerLost,
    /// The request takes longer than the lease, which is not renewed meanwhile; then it has its effect.
    LeaseLapsedBefore,
    /// The answer takes longer than the lease, which is not renewed meanwhile.
    LeaseLapsedAfter,
}

impl Fault {
    /// What can go wrong at a step of this kind.
    #[must_use]
    pub fn of(kind: StepKind) -> &'static [Self] {
        const ALL: [Fault; 8] = [
            Fault::CrashBefore,
            Fault::CrashAfter,
            Fault::ConnectionLostBefore,
            Fault::ConnectionLostAfter,
            Fault::RequestLost,
            Fault::AnswerLost,
            Fault::LeaseLapsedBefore,
            Fault::LeaseLapsedAfter,
        ];
        let [without_answer @ .., _, _, _, _] = &ALL;
        let [without_lease @ .., _, _] = &ALL;
        match kind {
            StepKind::Declare | StepKind::Consume | StepKind::Settlement => without_answer,
            StepKind::Publish | StepKind::Ping | StepKind::Renew => without_lease,
            StepKind::Claim | StepKind::Complete | StepKind::Release | StepKind::Condemn | StepKind::Lettered => &ALL,
        }
    }

    /// Whether the step has no effect.
    pub(super) fn prevents(self) -> bool {
        matches!(self, Self::CrashBefore | Self::ConnectionLostBefore | Self::RequestLost)
    }
}

/// Faults of one schedule: each at the step with this number, rising.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedule(pub Vec<(usize, Fault)>);

impl Schedule {
    /// The fault at a step.
    pub(super) fn at(&self, step: usize) -> Option<Fault> {
        self.0.iter().find(|(at, _)| *at == step).map(|(_, fault)| *fault)
    }
}

/// As [`CrashTest::only`](super::CrashTest::only) takes it: `[(7, Fault::CrashAfter)]`.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.0.iter().map(|(step, fault)| format!("({step}, Fault::{fault:?})")).collect();
        write!(f, "[{}]", faults.join(", "))
    }
}
