use std::time::Duration;

use tokio::time::Instant;

use super::contract::StoreError;

/// How long not to try again after the first failure to connect; doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// Keeps from connecting again too soon after it failed. Meanwhile questions fail at once, for the same reason.
#[derive(Debug, Default)]
pub(crate) struct Backoff(Option<Down>);

#[derive(Debug)]
struct Down {
    why: StoreError,
    pause: Duration,
    until: Instant,
}

impl Backoff {
    /// Whether it is time to connect; if not, why it failed.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &self.0 {
            Some(down) if Instant::now() < down.until => Err(down.why.clone()),
            _ => Ok(()),
        }
    }

    pub(crate) fn connected(&mut self) {
        self.0 = None;
    }

    pub(crate) fn failed(&mut self, why: &StoreError) {
        let pause = self.0.as_ref().map_or(FIRST, |down| (down.pause * 2).min(LONGEST));
        self.0 = Some(Down { why: why.clone(), pause, until: Instant::now() + pause });
    }
}
