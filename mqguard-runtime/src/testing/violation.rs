use std::fmt;

use super::fault::Schedule;
use super::step::TraceLine;

/// What has to hold in every schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// The processes start, and none fails for good.
    Running,
    /// Nothing waits for ever: at last no message is in a queue other than those of dead letters.
    AtRest,
    /// Each published message ends in a success or a dead letter.
    NothingLost,
    /// With a store, no message ends in both.
    OneEnd,
    /// No claim is granted after the success was recorded.
    NoRunAfterSuccess,
    /// Two owners never have a live lease on one message, and no step of an owner that was taken over is applied.
    OneOwner,
    /// A message is granted at most `max + 1` runs, and one more for each fault and each uncounted retry.
    BoundedRuns,
    /// No retry is granted before its delay is over.
    NoEarlyRetry,
    /// What [`CrashTest::check`](super::CrashTest::check) says.
    Check,
}

/// Something that does not hold in a schedule.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Violation {
    /// The faults; none in the clean run. [`CrashTest::only`](super::CrashTest::only) runs just this.
    pub schedule: Schedule,
    /// What does not hold.
    pub invariant: Invariant,
    /// In words: which message, and what became of it.
    pub detail: String,
    /// Everything that happened.
    pub trace: Vec<TraceLine>,
}

impl Violation {
    /// The steps at which something went wrong.
    pub fn faulty_steps(&self) -> impl Iterator<Item = &TraceLine> {
        self.trace.iter().filter(|line| line.fault.is_some())
    }
}

/// A trace is shown with this many lines of its beginning and of its end.
const SHOWN: usize = 60;

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}: {}", self.invariant, self.detail)?;
        for line in self.faulty_steps() {
            let number = line.step.map_or(0, |(number, _)| number);
            let Some(fault) = line.fault else { continue };
            writeln!(f, "  {fault:?} at step {number}: {}", line.what)?;
        }
        writeln!(f, "  again: .only({})", self.schedule)?;
        let left_out = self.trace.len().saturating_sub(2 * SHOWN);
        for (n, line) in self.trace.iter().enumerate() {
            if left_out == 0 || n < SHOWN || n >= SHOWN + left_out {
                writeln!(f, "  {line}")?;
            } else if n == SHOWN {
                writeln!(f, "  ... {left_out} lines ...")?;
            }
        }
        Ok(())
    }
}
