//! The two signals of a shutdown.

use tokio_util::sync::CancellationToken;

/// Drain: take nothing new and finish what runs. Force: the grace period is over, hand back what still runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    pub(crate) drain: CancellationToken,
    pub(crate) force: CancellationToken,
}
