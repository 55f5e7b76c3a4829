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
