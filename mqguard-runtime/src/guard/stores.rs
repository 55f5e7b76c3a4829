use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::consumer::IdempotentSpec;
use crate::idempotency::{MemoryStore, Mode, Store};

/// The stores of a guard, by the names that attributes use.
#[derive(Default)]
pub(super) struct Stores(BTreeMap<String, Named>);

struct Named {
    store: Arc<dyn Store>,
    /// Its log, once it was asked for: the consumers of one store share it.
    log: OnceLock<Option<Arc<dyn Store>>>,
}

impl Named {
    fn new(store: Arc<dyn Store>) -> Self {
        Self { store, log: OnceLock::new() }
    }

    fn in_mode(&self, mode: Mode) -> Option<&Arc<dyn Store>> {
        match mode {
            Mode::Unique => Some(&self.store),
            Mode::StateMachine => self.log.get_or_init(|| self.store.state_machine()).as_ref(),
        }
    }
}

/// Why a consumer has no store.
pub(super) enum NoStore {
    /// None is under this name.
    Unknown,
    /// It does not have this mode.
    Mode,
}

impl Stores {
    /// Puts a store under a name; returns the one that was there.
    pub(super) fn insert(&mut self, name: String, store: Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        self.0.insert(name, Named::new(store)).map(|old| old.store)
    }

    /// Puts a store under a name that has none.
    pub(super) fn provide(&mut self, name: &str, store: impl FnOnce() -> Arc<dyn Store>) {
        if !self.0.contains_key(name) {
            self.insert(name.to_owned(), store());
        }
    }

    /// What a consumer asks for.
    pub(super) fn find(&self, spec: &IdempotentSpec) -> Result<&Arc<dyn Store>, NoStore> {
        let named = self.0.get(spec.store).ok_or(NoStore::Unknown)?;
        named.in_mode(spec.mode).ok_or(NoStore::Mode)
    }

    /// Has the memory store stand in for those of `specs` that are not configured, on the embedded broker, where nothing outlives the
    /// process anyway; `memory` is always there.
    pub(super) fn stand_in(&mut self, specs: impl Iterator<Item = IdempotentSpec>, embedded: bool) {
        for name in specs.map(|spec| spec.store).filter(|name| embedded || *name == "memory") {
            self.provide(name, || {
                if name != "memory" {
                    tracing::info!(
                        "the store `{name}` is not configured; on the embedded broker the memory store stands in for it"
                    );
                }
                Arc::new(MemoryStore::new())
            });
        }
    }

    /// Logs what an operator should know of those that `specs` name, once for each.
    pub(super) fn tell_warnings(&self, specs: impl Iterator<Item = IdempotentSpec>, embedded: bool) {
        let used: BTreeMap<&str, &Named> =
            specs.filter_map(|spec| self.0.get(spec.store).map(|named| (spec.store, named))).collect();
        for (name, Named { store, .. }) in used {
            if store.is_volatile() && !embedded {
                tracing::warn!(
                    "the store `{name}` is in this process: duplicates that reach other processes, or come after a restart, will run"
                );
            }
            tokio::spawn(tell_warnings(name.to_owned(), Arc::clone(store)));
        }
    }

    /// Those that `specs` name and that have to be purged, each once.
    pub(super) fn to_purge(&self, specs: impl Iterator<Item = IdempotentSpec>) -> Vec<Arc<dyn Store>> {
        let used: BTreeMap<(&str, bool), IdempotentSpec> =
            specs.map(|spec| ((spec.store, spec.mode == Mode::Unique), spec)).collect();
        let stores = used.values().filter_map(|spec| self.find(spec).ok());
        stores.filter(|store| store.needs_purging()).map(Arc::clone).collect()
    }

    /// Puts `wrap` before every store.
    #[cfg(feature = "testing")]
    pub(super) fn wrap(&mut self, wrap: impl Fn(Arc<dyn Store>) -> Arc<dyn Store>) {
        self.0.values_mut().for_each(|named| *named = Named::new(wrap(Arc::clone(&named.store))));
    }
}

async fn tell_warnings(name: String, store: Arc<dyn Store>) {
    match store.warnings().await {
        Ok(warnings) => warnings.iter().for_each(|warning| tracing::warn!("store `{name}`: {warning}")),
        Err(error) => tracing::debug!("store `{name}` could not be checked: {error}"),
    }
}
