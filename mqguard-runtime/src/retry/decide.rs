use std::time::{Duration, SystemTime};

use super::classify::Retry;
use super::policy::{LONGEST_DELAY, RetryPolicy};
use super::progress::Progress;
use crate::dead_letter::Reason;

/// What follows a failed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another run after this long.
    Retry { delay: Duration, counted: bool },
    /// No more runs.
    Dead(Reason),
}

/// An uncounted retry waits at least this long: nothing but time ends a series of them, so without a wait it would be a busy loop.
const SHORTEST_UNCOUNTED: Duration = Duration::from_millis(100);

/// Decides what follows a run that failed at `now`; `progress` includes the failure. `random` (0.0 to 1.0) is for jitter.
pub(crate) fn decide(policy: Option<&RetryPolicy>, progress: &Progress, retry: Retry, now: SystemTime, random: f64) -> Next {
    let Some(policy) = policy else {
        return Next::Dead(if retry == Retry::Fatal { Reason::Fatal } else { Reason::Exhausted });
    };
    let (delay, counted) = match retry {
        Retry::Fatal => return Next::Dead(Reason::Fatal),
        Retry::Retryable => (policy.jittered(progress.retries.saturating_add(1), random), true),
        Retry::After(delay) => (delay, true),
        // Uncounted retries without a bound would go on for ever.
        Retry::Later(delay) if policy.within.is_none() => (delay, true),
        Retry::Later(delay) => (delay.max(SHORTEST_UNCOUNTED), false),
    };
    let delay = delay.min(LONGEST_DELAY);
    let spent = counted && progress.retries >= policy.max;
    let too_late = policy.within.is_some_and(|within| now + delay > progress.first_failure.unwrap_or(now) + within);
    if spent || too_late { Next::Dead(Reason::Exhausted) } else { Next::Retry { delay, counted } }
}

#[cfg(test)]
mod tests {
    use super::super::policy::Backoff;
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn policy(within: Option<Duration>) -> RetryPolicy {
        let backoff = Backoff::Exponential { delay: Duration::from_secs(5), factor: 2.0 };
        RetryPolicy { max: 3, backoff, max_delay: None, jitter: 0.0, within }
    }

    fn after(retries: u32, retry: Retry, within: Option<Duration>, now: SystemTime) -> Next {
        let progress = Progress { retries, first_failure: Some(NOW), ..Progress::default() };
        decide(Some(&policy(within)), &progress, retry, now, 0.0)
    }

    #[test]
    fn retries_until_max_is_spent() {
        let seconds = |delay| Next::Retry { delay: Duration::from_secs(delay), counted: true };
        let steps = [0, 1, 2, 3, 26].map(|retries| after(retries, Retry::Retryable, None, NOW));
        let exhausted = Next::Dead(Reason::Exhausted);
        assert_eq!(steps, [seconds(5), seconds(10), seconds(20), exhausted.clone(), exhausted]);
    }

    #[test]
    fn fatal_is_final_and_no_policy_means_no_retry() {
        assert_eq!(after(0, Retry::Fatal, None, NOW), Next::Dead(Reason::Fatal));
        let none = |retry| decide(None, &Progress::default(), retry, NOW, 0.0);
        assert_eq!(none(Retry::Retryable), Next::Dead(Reason::Exhausted));
        assert_eq!(none(Retry::Fatal), Next::Dead(Reason::Fatal));
    }

    #[test]
    fn an_error_can_name_its_own_delay() {
        let minute = Duration::from_secs(60);
        assert_eq!(after(2, Retry::After(minute), None, NOW), Next::Retry { delay: minute, counted: true });
        assert_eq!(after(3, Retry::After(minute), None, NOW), Next::Dead(Reason::Exhausted));
        assert_eq!(after(0, Retry::After(Duration::MAX), None, NOW), Next::Retry { delay: LONGEST_DELAY, counted: true });
    }

    #[test]
    fn later_spends_no_attempt_but_is_bounded_by_within() {
        let minute = Duration::from_secs(60);
        let bounded = |now| after(3, Retry::Later(minute), Some(10 * minute), now);
        assert_eq!(bounded(NOW + 9 * minute), Next::Retry { delay: minute, counted: false });
        assert_eq!(bounded(NOW + 9 * minute + Duration::from_millis(1)), Next::Dead(Reason::Exhausted));
        assert_eq!(after(0, Retry::Later(minute), None, NOW), Next::Retry { delay: minute, counted: true });
        assert_eq!(after(3, Retry::Later(minute), None, NOW), Next::Dead(Reason::Exhausted));
    }

    #[test]
    fn only_an_uncounted_retry_has_a_shortest_wait() {
        let at_once = |within| after(0, Retry::Later(Duration::ZERO), within, NOW);
        assert_eq!(at_once(None), Next::Retry { delay: Duration::ZERO, counted: true });
        let within = Some(Duration::from_secs(60));
        assert_eq!(at_once(within), Next::Retry { delay: SHORTEST_UNCOUNTED, counted: false });
    }

    #[test]
    fn within_ends_counted_retries_too() {
        let within = Some(Duration::from_secs(12));
        assert_eq!(
            after(0, Retry::Retryable, within, NOW + Duration::from_secs(7)),
            Next::Retry { delay: Duration::from_secs(5), counted: true }
        );
        assert_eq!(after(1, Retry::Retryable, within, NOW + Duration::from_secs(5)), Next::Dead(Reason::Exhausted));
    }
}
