use std::time::SystemTime;

use tokio::time::Instant;

/// The time of day by tokio's clock, which may be a virtual one.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    began: (SystemTime, Instant),
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { began: (SystemTime::now(), Instant::now()) }
    }

    pub(super) fn at(self, instant: Instant) -> SystemTime {
        self.began.0 + instant.saturating_duration_since(self.began.1)
    }
}
