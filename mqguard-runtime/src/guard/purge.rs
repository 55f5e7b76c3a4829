//! Removes the records that are past their time, while a guard runs.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::idempotency::Store;

/// How often it is looked for such records, about: several processes should not do so at the same moment.
const INTERVAL: Duration = Duration::from_secs(60);

/// Purges a store from time to time until `stop`.
pub(super) async fn purge(store: Arc<dyn Store>, stop: CancellationToken) {
    loop {
        let pause = INTERVAL.mul_f64(0.5 + fastrand::f64());
        if tokio::time::timeout(pause, stop.cancelled()).await.is_ok() {
            return;
        }
        let purged = tokio::select! {
            purged = store.purge() => purged,
            () = stop.cancelled() => return,
        };
        match purged {
            Ok(0) => {}
            Ok(records) => tracing::debug!(?store, records, "removed records that are past their time"),
            Err(error) => tracing::warn!(?store, "records that are past their time are not removed yet: {error}"),
        }
    }
}
