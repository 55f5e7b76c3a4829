//! How long a message can be on its way through its retries.

use std::time::Duration;

use crate::model::{Backoff, Retry};

/// No hold queue can keep a message longer than this (its TTL has 32 bits of milliseconds).
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);

impl Retry {
    /// The wait before the n-th retry (from 1), in seconds, without jitter.
    fn delay(&self, n: u32) -> f64 {
        let delay = match &self.backoff {
            Backoff::Exponential { delay, factor } => delay.as_secs_f64() * factor.powf(f64::from(n) - 1.0),
            Backoff::Schedule(entries) => {
                let index = usize::try_from(n).unwrap_or(usize::MAX).saturating_sub(1);
                entries.get(index).or(entries.last()).map_or(0.0, Duration::as_secs_f64)
            }
        };
        self.max_delay.map_or(delay, |max| delay.min(max.as_secs_f64()))
    }

    /// The first retry whose delay no hold queue can keep, with that delay.
    pub(crate) fn overlong_delay(&self) -> Option<(u32, Duration)> {
        let overlong = |n: &u32| self.delay(*n) > LONGEST_DELAY.as_secs_f64();
        (1..=self.max).find(overlong).map(|n| (n, seconds(self.delay(n))))
    }

    /// All delays together at their longest: with the whole jitter, and a tenth more for rounding up.
    pub(crate) fn longest_wait(&self) -> Duration {
        let sum: f64 = (1..=self.max).map(|n| self.delay(n)).sum();
        let longest = seconds(sum * (1.0 + self.jitter) * 1.1);
        self.within.map_or(longest, |within| longest.min(within))
    }

    /// From the first run to the end of the last one at the latest, when each run takes up to `run`.
    pub(crate) fn horizon(&self, run: Duration) -> Duration {
        self.longest_wait().saturating_add(run.saturating_mul(self.max + 1))
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// The shortest duration that is easily written and longer than `horizon`.
pub(crate) fn round_up(horizon: Duration) -> Duration {
    let unit = match horizon.as_secs() {
        ..3_600 => 60,
        3_600..172_800 => 3_600,
        _ => 86_400,
    };
    Duration::from_secs((horizon.as_secs() / unit).saturating_add(1).saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(max: u32, delay: u64, factor: f64) -> Retry {
        let backoff = Backoff::Exponential { delay: Duration::from_secs(delay), factor };
        Retry { max, backoff, max_delay: None, jitter: 0.0, within: None }
    }

    #[test]
    fn the_horizon_is_delays_and_runs() {
        let retry = exponential(3, 10, 2.0);
        assert_eq!(retry.longest_wait(), Duration::from_secs(77));
        assert_eq!(retry.horizon(Duration::from_secs(330)), Duration::from_secs(77 + 4 * 330));
        let jittered = Retry { jitter: 0.5, ..exponential(3, 10, 2.0) };
        assert_eq!(jittered.longest_wait(), Duration::from_millis(115_500));
        let capped = Retry { max_delay: Some(Duration::from_secs(10)), ..exponential(100, 10, 2.0) };
        assert_eq!(capped.longest_wait(), Duration::from_secs(1_100));
        let bounded = Retry { within: Some(Duration::from_secs(60)), ..exponential(3, 10, 2.0) };
        assert_eq!(bounded.longest_wait(), Duration::from_secs(60));
        let backoff = Backoff::Schedule(vec![Duration::from_secs(10), Duration::from_secs(20)]);
        let schedule = Retry { backoff, ..exponential(4, 0, 1.0) };
        assert_eq!(schedule.longest_wait(), Duration::from_secs(77));
    }

    #[test]
    fn delays_beyond_every_bound_do_not_overflow() {
        let retry = exponential(1_000, 1, 100.0);
        assert_eq!(retry.longest_wait(), Duration::MAX);
        assert_eq!(retry.horizon(Duration::from_secs(330)), Duration::MAX);
        assert_eq!(retry.overlong_delay(), Some((5, Duration::from_secs(100_000_000))));
        assert_eq!(exponential(3, 5, 2.0).overlong_delay(), None);
        round_up(Duration::MAX);
    }

    #[test]
    fn rounded_up_durations_are_longer() {
        for (horizon, expected) in [(59, 60), (60, 120), (3_600, 7_200), (100_000, 100_800), (200_000, 259_200)] {
            assert_eq!(round_up(Duration::from_secs(horizon)), Duration::from_secs(expected), "{horizon}");
        }
    }
}
