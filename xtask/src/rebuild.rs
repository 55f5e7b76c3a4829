//! `cargo xtask rebuild`: what a hundred consumers cost the compiler, beside a hundred functions that hand-written loops call.

mod sources;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::run::foreground;
use crate::workspace::{Workspace, cargo};

/// Which of the handlers is changed.
const TOUCHED: usize = 50;
const ROUNDS: usize = 9;

/// The two crates, in the order in which they are built.
const CRATES: [&str; 2] = ["guarded", "by_hand"];

/// Measures; the exit code.
pub(crate) fn run() -> anyhow::Result<u8> {
    let workspace = Workspace::load()?;
    let directory = workspace.target_directory.join("rebuild");
    sources::write(&directory, &workspace.workspace_root)?;
    for name in CRATES {
        let took = build(&directory, name).with_context(|| format!("the crate {name}"))?;
        eprintln!("xtask: built {name} with its dependencies in {:.1} s", took.as_secs_f64());
    }
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (name, times) in CRATES.into_iter().zip(&mut times) {
            sources::touch(&directory, name, TOUCHED, round)?;
            times.push(build(&directory, name)?);
        }
    }
    let [guarded, by_hand] = times.map(median);
    println!("one of {} handlers changed, debug build, median of {ROUNDS} in turn", sources::HANDLERS);
    println!("  loops by hand   {:6.2} s", by_hand.as_secs_f64());
    println!("  mqguard         {:6.2} s   {:.2} times", guarded.as_secs_f64(), guarded.as_secs_f64() / by_hand.as_secs_f64());
    Ok(0)
}

fn build(directory: &Path, name: &str) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let mut command = cargo();
    command.args(["build", "--quiet", "-p", name]).current_dir(directory).env_remove("CARGO_TARGET_DIR");
    ensure!(foreground(&mut command)?.success(), "it does not build");
    Ok(began.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
