use std::time::Duration;

/// How often and after which delays a failed message is tried again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Retries after the first run: the handler runs at most `max + 1` times.
    pub max: u32,
    /// What the delays are.
    pub backoff: Backoff,
    /// No delay is longer.
    pub max_delay: Option<Duration>,
    /// Each delay is lengthened by a random part of up to this share of it (0.0 to 1.0). It never shortens.
    pub jitter: f64,
    /// No retry is due later than this after the first failure.
    pub within: Option<Duration>,
}

/// The sequence of delays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Backoff {
    /// `delay * factor^(n - 1)` before the n-th retry.
    Exponential {
        /// The delay before the first retry.
        delay: Duration,
        /// What each delay is multiplied by to get the next (at least 1).
        factor: f64,
    },
    /// These, in order; the last one again when there are more retries than entries.
    Schedule(&'static [Duration]),
}

/// No delay is longer than this, whatever a policy or an error asks for: RabbitMQ's own limit is 2^32 ms, about 49 days.
pub const LONGEST_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);

impl RetryPolicy {
    /// The delay before the `n`-th retry (from 1), without jitter: whole milliseconds, never above `max_delay` or [`LONGEST_DELAY`],
    /// never less than the one before.
    #[must_use]
    pub fn delay(&self, n: u32) -> Duration {
        let raw = match self.backoff {
            Backoff::Exponential { delay, factor } => exponential(delay, factor, n),
            Backoff::Schedule(delays) => {
                let at = usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX).min(delays.len().saturating_sub(1));
                delays.get(at).copied().unwrap_or_default()
            }
        };
        raw.min(self.max_delay.unwrap_or(LONGEST_DELAY)).min(LONGEST_DELAY)
    }

    /// The delay before the `n`-th retry with jitter; `random` is between 0.0 and 1.0.
    #[must_use]
    pub fn jittered(&self, n: u32, random: f64) -> Duration {
        let delay = self.delay(n);
        if self.jitter > 0.0 { scale(delay, 1.0 + self.jitter * random.clamp(0.0, 1.0)).min(LONGEST_DELAY) } else { delay }
    }

    /// The distinct delays of all retries, shortest first, at most `limit` of them; none when there is jitter, which spreads them.
    pub(crate) fn steps(&self, limit: usize) -> Vec<Duration> {
        if self.jitter > 0.0 {
            return Vec::new();
        }
        let mut steps: Vec<Duration> = (1..=self.max).map(|n| self.delay(n)).filter(|delay| !delay.is_zero()).collect();
        steps.sort();
        steps.dedup();
        steps.truncate(limit);
        steps
    }
}

fn exponential(delay: Duration, factor: f64, n: u32) -> Duration {
    // In floating point this saturates at infinity instead of overflowing, and the conversion back at the longest delay.
    scale(delay, factor.max(1.0).powf(f64::from(n.saturating_sub(1))))
}

fn scale(delay: Duration, by: f64) -> Duration {
    let longest = LONGEST_DELAY.as_millis();
    let millis = delay.as_millis().min(longest) as f64 * by;
    // `as` saturates; a product below the limit is exact to the millisecond after rounding up.
    Duration::from_millis((millis.ceil() as u64).min(u64::try_from(longest).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exponential_policy(delay: Duration, factor: f64, max_delay: Option<Duration>) -> RetryPolicy {
        RetryPolicy { max: 3, backoff: Backoff::Exponential { delay, factor }, max_delay, jitter: 0.0, within: None }
    }

    #[test]
    fn doubles_from_five_seconds() {
        let policy = exponential_policy(Duration::from_secs(5), 2.0, None);
        let delays: Vec<u64> = (1..=4).map(|n| policy.delay(n).as_secs()).collect();
        assert_eq!(delays, [5, 10, 20, 40]);
    }

    #[test]
    fn other_frameworks_settings_translate() {
        // Spring: max-attempts=3 counts the first run, initial-interval=2000, multiplier=2, max-interval=5000.
        let spring = RetryPolicy { max: 2, ..exponential_policy(Duration::from_secs(2), 2.0, Some(Duration::from_secs(5))) };
        assert_eq!([1, 2].map(|n| spring.delay(n).as_secs()), [2, 4]);
        // Symfony: max_retries=3, delay=1000, multiplier=2, max_delay=0 (no cap).
        let symfony = exponential_policy(Duration::from_secs(1), 2.0, None);
        assert_eq!([1, 2, 3].map(|n| symfony.delay(n).as_secs()), [1, 2, 4]);
    }

    #[test]
    fn a_schedule_is_followed_and_its_last_entry_repeats() {
        const SCHEDULE: &[Duration] = &[Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60)];
        let policy = RetryPolicy { max: 5, backoff: Backoff::Schedule(SCHEDULE), max_delay: None, jitter: 0.0, within: None };
        assert_eq!([1, 2, 3, 4, 5].map(|n| policy.delay(n).as_secs()), [1, 10, 60, 60, 60]);
        assert_eq!(policy.steps(32), SCHEDULE);
    }

    #[test]
    fn zero_stays_zero() {
        let policy = exponential_policy(Duration::ZERO, 2.0, None);
        assert_eq!([1, 2, 99].map(|n| policy.delay(n)), [Duration::ZERO; 3]);
        assert!(policy.steps(32).is_empty());
    }

    #[test]
    fn extremes_end_at_the_cap() {
        let hour = Duration::from_secs(3600);
        assert_eq!(exponential_policy(Duration::from_secs(1), 10.0, Some(hour)).delay(200), hour);
        assert_eq!(exponential_policy(Duration::from_secs(5), 2.0, None).delay(64), LONGEST_DELAY);
        assert_eq!(exponential_policy(Duration::from_millis(u64::MAX), 1.0, None).delay(1), LONGEST_DELAY);
        assert_eq!(exponential_policy(Duration::from_secs(1), f64::INFINITY, None).delay(u32::MAX), LONGEST_DELAY);
    }

    proptest! {
        #[test]
        fn delays_never_shrink_and_never_pass_the_cap(
            ms in 0u64..10_000_000, factor in 1.0f64..20.0, cap in proptest::option::of(1u64..100_000_000), n in 1u32..300,
        ) {
            let policy = exponential_policy(Duration::from_millis(ms), factor, cap.map(Duration::from_millis));
            prop_assert!(policy.delay(n) <= policy.delay(n + 1));
            prop_assert!(policy.delay(n) <= cap.map_or(LONGEST_DELAY, Duration::from_millis));
            prop_assert!(ms == 0 || policy.delay(n) > Duration::ZERO);
        }

        #[test]
        fn jitter_only_lengthens(ms in 1u64..10_000_000, jitter in 0.0f64..=1.0, random in 0.0f64..=1.0) {
            let policy = RetryPolicy { jitter, ..exponential_policy(Duration::from_millis(ms), 1.0, None) };
            let delay = policy.jittered(1, random);
            prop_assert!(delay >= policy.delay(1));
            prop_assert!(delay <= policy.delay(1).mul_f64(1.0 + jitter) + Duration::from_millis(1));
        }
    }
}
