use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Lets a message run while nothing else does in this guard: if it takes the process down, it takes no other message along.
#[derive(Debug, Clone, Default)]
pub(crate) struct Isolation {
    runs: Arc<RwLock<()>>,
    turn: Arc<Mutex<()>>,
}

/// The right to be the next one alone.
#[derive(Debug)]
pub(crate) struct Turn {
    _turn: OwnedMutexGuard<()>,
}

/// Where a delivery runs; left when dropped.
#[derive(Debug)]
pub(crate) enum Place {
    Beside { _runs: OwnedRwLockReadGuard<()> },
    Alone { _runs: OwnedRwLockWriteGuard<()>, _turn: Turn },
}

impl Isolation {
    /// Beside others, if nobody is alone or waits for it.
    pub(crate) fn try_beside(&self) -> Option<Place> {
        Arc::clone(&self.runs).try_read_owned().ok().map(|runs| Place::Beside { _runs: runs })
    }

    /// Beside others, as soon as nobody is alone or waits for it.
    pub(crate) async fn beside(&self) -> Place {
        Place::Beside { _runs: Arc::clone(&self.runs).read_owned().await }
    }

    pub(crate) async fn turn(&self) -> Turn {
        Turn { _turn: Arc::clone(&self.turn).lock_owned().await }
    }

    /// Alone, once what runs has ended; nothing begins meanwhile.
    ///
    /// # Errors
    /// The turn, when that takes too long.
    pub(crate) async fn alone(&self, turn: Turn, patience: Duration) -> Result<Place, Turn> {
        match tokio::time::timeout(patience, Arc::clone(&self.runs).write_owned()).await {
            Ok(runs) => Ok(Place::Alone { _runs: runs, _turn: turn }),
            Err(_elapsed) => Err(turn),
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "tests")]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn alone_is_alone() {
        let isolation = Isolation::default();
        let beside = (isolation.try_beside(), isolation.beside().await);
        let turn = isolation.alone(isolation.turn().await, PATIENCE).await.expect_err("others run");
        assert!(isolation.try_beside().is_some(), "whoever gave up keeps nobody waiting");
        assert!(isolation.turn().now_or_never().is_none(), "one at a time");
        let waiting = tokio::spawn({
            let isolation = isolation.clone();
            async move { isolation.alone(turn, PATIENCE).await }
        });
        tokio::task::yield_now().await;
        assert!(isolation.try_beside().is_none(), "nothing begins while somebody waits to be alone");
        drop(beside);
        let alone = waiting.await.expect("it ends").expect("nothing else runs");
        assert!(isolation.try_beside().is_none());
        assert!(isolation.turn().now_or_never().is_none(), "one at a time");
        drop(alone);
        assert!(isolation.try_beside().is_some());
    }
}
