//! The pauses between tries of something that is expected to come back: a broker, a store.

use std::time::Duration;

/// Doubling pauses with jitter.
#[derive(Debug)]
pub(crate) struct Pause {
    next: Duration,
    longest: Duration,
}

impl Pause {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, longest }
    }

    /// Between tries of what may stay away for long: a store, a queue whose subscriptions end as soon as they have begun.
    pub(crate) fn reconnect() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(5))
    }

    /// Between attempts to connect to the broker: messages are to flow within 2 s of its return.
    pub(crate) fn broker() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_millis(500))
    }

    /// The next pause: between half and all of the step, so that a fleet does not come back in step.
    pub(crate) fn step(&mut self) -> Duration {
        let pause = self.next.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.next = (self.next * 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut pause = Pause::new(Duration::from_millis(100), Duration::from_millis(350));
        for full in [100, 200, 350, 350] {
            let step = pause.step();
            let full = Duration::from_millis(full);
            assert!(step >= full / 2 && step <= full, "{step:?} of {full:?}");
        }
    }
}
