//! Which schedules are run.

use std::time::Duration;

use super::crash_test::CrashTest;
use super::fault::{Fault, Schedule};
use super::report::Report;
use super::run::Ran;
use super::step::TraceLine;
use super::violation::Violation;

/// Faults in a chain at most.
const LONGEST_CHAIN: usize = 5;

const CHAIN_SEED: u64 = 11;

/// After so many violations no more are looked for.
const MOST_VIOLATIONS: usize = 100;

impl CrashTest<'_> {
    /// Runs all schedules.
    ///
    /// When the run without faults is not clean, there are no others.
    ///
    /// # Panics
    /// When tokio's clock is not paused.
    pub async fn run(self) -> Report {
        assert_paused().await;
        let mut report = Report::default();
        let clean = self.run_schedule(&Schedule::default()).await;
        report.clean_steps = clean.steps;
        let plan = if self.only.is_some() { Vec::new() } else { with_one_more(&Schedule::default(), &clean.trace) };
        report.add(Schedule::default(), clean);
        if !report.violations.is_empty() {
            return report;
        }
        match &self.only {
            Some(schedule) => {
                report.singles = 1;
                report.add(schedule.clone(), self.run_schedule(schedule).await);
            }
            None => {
                self.run_all(&plan, &mut report).await;
                self.run_chains(&plan, &mut report).await;
            }
        }
        report
    }

    async fn run_all(&self, singles: &[Schedule], report: &mut Report) {
        let mut pairs = Vec::new();
        for schedule in singles {
            let ran = self.run_schedule(schedule).await;
            if self.most_pairs > 0 {
                pairs.extend(with_one_more(schedule, &ran.trace));
            }
            report.singles += 1;
            if report.add(schedule.clone(), ran) {
                return;
            }
        }
        report.possible_pairs = pairs.len();
        for schedule in sample(&pairs, self.most_pairs) {
            report.pairs += 1;
            if report.add(schedule.clone(), self.run_schedule(schedule).await) {
                return;
            }
        }
    }

    /// Adds fault after fault, each drawn from those that are possible in the run before.
    async fn run_chains(&self, singles: &[Schedule], report: &mut Report) {
        // Not the generator that jitter is drawn from, which begins anew with each schedule.
        let mut random = fastrand::Rng::with_seed(CHAIN_SEED);
        for _ in 0..self.chains {
            let mut possible = singles.to_vec();
            for _ in 0..LONGEST_CHAIN {
                if report.cut_short || possible.is_empty() {
                    break;
                }
                let schedule = possible.swap_remove(random.usize(..possible.len()));
                let ran = self.run_schedule(&schedule).await;
                possible = with_one_more(&schedule, &ran.trace);
                report.chained += 1;
                report.add(schedule, ran);
            }
        }
    }
}

impl Report {
    /// Adds what came of a schedule; tells whether it is enough.
    fn add(&mut self, schedule: Schedule, ran: Ran) -> bool {
        self.unreached += usize::from(schedule.0.last().is_some_and(|(last, _)| *last > ran.steps));
        let violation =
            |(invariant, detail)| Violation { schedule: schedule.clone(), invariant, detail, trace: ran.trace.clone() };
        self.violations.extend(ran.found.into_iter().map(violation));
        self.trace = ran.trace;
        self.cut_short = self.violations.len() >= MOST_VIOLATIONS;
        self.cut_short
    }
}

/// The schedules with one fault more, after those that there are, at any step of a run of it.
fn with_one_more(schedule: &Schedule, trace: &[TraceLine]) -> Vec<Schedule> {
    let last = schedule.0.last().map_or(0, |(step, _)| *step);
    let later = trace.iter().filter_map(|line| line.step).filter(|(step, _)| *step > last);
    let with = |step: usize, fault: Fault| Schedule(schedule.0.iter().copied().chain([(step, fault)]).collect());
    later.flat_map(|(step, kind)| Fault::of(kind).iter().map(move |fault| with(step, *fault))).collect()
}

/// Up to `most` of them, spread evenly.
fn sample<T>(all: &[T], most: usize) -> impl Iterator<Item = &T> {
    let count = all.len().min(most);
    (0..count).filter_map(move |n| all.get(n * all.len() / count))
}

async fn assert_paused() {
    let began = std::time::Instant::now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "crash enumeration needs tokio's paused clock: write `#[tokio::test(start_paused = true)]`"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StepKind;

    #[test]
    fn a_sample_is_even_and_no_larger_than_asked() {
        let all: Vec<u32> = (0..10).collect();
        let taken = |most| sample(&all, most).copied().collect::<Vec<_>>();
        assert_eq!(taken(5), [0, 2, 4, 6, 8]);
        assert_eq!(taken(100), all);
        assert_eq!(taken(0), [0; 0]);
    }

    #[test]
    fn the_second_fault_comes_after_the_first() {
        let line = |step| TraceLine {
            step: Some((step, StepKind::Settlement)),
            at: Duration::ZERO,
            process: 1,
            what: String::new(),
            outcome: String::new(),
            fault: None,
        };
        let trace: Vec<TraceLine> = (1..=3).map(line).collect();
        assert_eq!(with_one_more(&Schedule::default(), &trace).len(), 12);
        let two = with_one_more(&Schedule(vec![(2, Fault::CrashAfter)]), &trace);
        assert_eq!(two.len(), 4);
        assert!(two.iter().all(|schedule| schedule.0[1].0 == 3), "{two:?}");
    }
}
