//! Ctrl-C, SIGTERM and SIGHUP as a flag that waiting loops look at, so that guards still run.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static RECEIVED: LazyLock<Arc<AtomicUsize>> = LazyLock::new(|| Arc::new(AtomicUsize::new(0)));

/// The command was asked to end by this signal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupted(pub(crate) i32);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted by signal {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

impl Interrupted {
    /// What a shell reports for a command that this signal ended.
    pub(crate) fn exit_code(self) -> u8 {
        u8::try_from(128 + self.0).unwrap_or(1)
    }
}

/// From now on these signals set the flag instead of ending the process.
pub(crate) fn install() -> anyhow::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let value = usize::try_from(signal)?;
        signal_hook::flag::register_usize(signal, Arc::clone(&RECEIVED), value)
            .with_context(|| format!("cannot handle signal {signal}"))?;
    }
    Ok(())
}

/// The signal that arrived, if any.
pub(crate) fn received() -> Option<Interrupted> {
    match RECEIVED.load(Ordering::SeqCst) {
        0 => None,
        signal => Some(Interrupted(i32::try_from(signal).unwrap_or(SIGTERM))),
    }
}

/// An error as soon as a signal has arrived; for loops that wait.
pub(crate) fn check() -> anyhow::Result<()> {
    match received() {
        Some(interrupted) => Err(interrupted.into()),
        None => Ok(()),
    }
}
