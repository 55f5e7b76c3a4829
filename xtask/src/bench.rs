//! `cargo xtask bench`: throughput beside hand-written twins, on private servers.

use std::ffi::OsString;

use anyhow::Context as _;

use crate::run;
use crate::servers::{self, Guarded};
use crate::workspace::cargo;

/// Runs the benchmark; its exit code.
pub(crate) fn run() -> anyhow::Result<u8> {
    servers::install(&servers::BENCHED)?;
    let base = tempfile::Builder::new().prefix("mqguard-bench-").tempdir()?;
    let mut guarded = Guarded::new()?;
    guarded.watchdog().directory(base.path())?;
    let mut variables = Vec::new();
    for kind in servers::BENCHED {
        let server = guarded.start(kind, base.path())?;
        eprintln!("xtask: {} runs at {}", server.name, server.url);
        variables.push((kind.variable, OsString::from(&server.url)));
    }
    let mut command = cargo();
    command.args(["run", "--release", "--package", "benches"]).envs(variables);
    let status = run::announced(&mut command)?;
    u8::try_from(status.code().context("the benchmark was ended by a signal")?).context("an exit code above 255")
}
