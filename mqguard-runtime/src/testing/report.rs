use std::fmt;

use super::step::TraceLine;
use super::violation::Violation;

/// What a [`CrashTest`](super::CrashTest) came to.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// Steps of the run without faults.
    pub clean_steps: usize,
    /// Schedules with one fault that were run.
    pub singles: usize,
    /// Schedules with two faults that were run.
    pub pairs: usize,
    /// Schedules with two faults that there are. More than were run: an even sample was.
    pub possible_pairs: usize,
    /// Schedules that were run of chains of faults.
    pub chained: usize,
    /// Schedules in which a fault's step did not come: the consumer does not do the same each time.
    pub unreached: usize,
    /// Whether the enumeration ended early, because there were many violations already.
    pub cut_short: bool,
    pub(super) violations: Vec<Violation>,
    pub(super) trace: Vec<TraceLine>,
}

impl Report {
    /// What does not hold, in the order in which it was found.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// What happened in the last schedule that was run: the one of [`CrashTest::only`](super::CrashTest::only), if that was called.
    #[must_use]
    pub fn trace(&self) -> &[TraceLine] {
        &self.trace
    }

    /// Schedules that were run with faults.
    #[must_use]
    pub fn schedules(&self) -> usize {
        self.singles + self.pairs + self.chained
    }

    /// # Panics
    /// When something does not hold; the text is the whole report.
    pub fn assert_clean(&self) {
        assert!(self.violations.is_empty(), "{self}");
    }
}

/// So many violations are shown with their trace.
const SHOWN: usize = 5;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clean_steps, singles, pairs, possible_pairs, unreached, .. } = self;
        write!(f, "{clean_steps} steps without faults; {singles} schedules with one fault, {pairs} with two")?;
        if pairs < possible_pairs {
            write!(f, " (an even sample of {possible_pairs})")?;
        }
        if self.chained > 0 {
            write!(f, ", {} of chains", self.chained)?;
        }
        if *unreached > 0 {
            write!(f, "; in {unreached} a fault's step did not come")?;
        }
        writeln!(f, "; {} violations", self.violations.len())?;
        if self.cut_short {
            writeln!(f, "ended early: there were too many")?;
        }
        for violation in self.violations.iter().take(SHOWN) {
            write!(f, "\n{violation}")?;
        }
        for Violation { invariant, schedule, detail, .. } in self.violations.iter().skip(SHOWN) {
            write!(f, "\n{invariant:?} in {schedule}: {detail}")?;
        }
        Ok(())
    }
}
