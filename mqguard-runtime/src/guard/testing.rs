//! What crash enumeration needs of a guard that nobody else does.

use std::sync::Arc;

use super::builder::{Guard, Registered};
use super::error::Result;
use super::running::Running;
use crate::consumer::{ConsumerSpec, Handler};
use crate::idempotency::Store;
use crate::stop::Stop;

impl Guard {
    /// The registered consumers.
    pub(crate) fn registered(&self) -> Vec<(&'static ConsumerSpec, Arc<dyn Handler>)> {
        self.consumers.iter().map(|Registered { spec, handler }| (*spec, Arc::clone(handler))).collect()
    }

    /// Puts `wrap` before every store that a consumer names; `default` is the one under a name that has none.
    pub(crate) fn wrap_stores(&mut self, default: &Arc<dyn Store>, wrap: impl Fn(Arc<dyn Store>) -> Arc<dyn Store>) {
        let names: Vec<&str> = self.idempotent().map(|spec| spec.store).collect();
        names.into_iter().for_each(|name| self.stores.provide(name, || Arc::clone(default)));
        self.stores.wrap(wrap);
    }

    /// Starts all consumers without waiting for them, with the means to end them at once.
    pub(crate) fn launch_stoppable(self) -> Result<(Running, Stop)> {
        let running = self.launch()?;
        let stop = running.stop.clone();
        Ok((running, stop))
    }
}
