//! `cargo xtask lint`: every check that needs no server.

use std::process::{Command, Stdio};

use crate::run;
use crate::workspace::{Workspace, cargo};

/// The packages that are checked with sets of features too: each alone, each missing. Together: the first hands its features on.
const WITH_FEATURES: [&str; 2] = ["mqguard", "mqguard-runtime"];

/// Runs all the checks, the rest too when one fails; the exit code.
pub(crate) fn run() -> anyhow::Result<u8> {
    let mut failed = Vec::new();
    for mut command in commands(&Workspace::load()?) {
        if !run::announced(&mut command)?.success() {
            failed.push(run::shown(&command));
        }
    }
    if !has_cargo_deny() {
        eprintln!("xtask: skipped: cargo deny (cargo-deny is not installed)");
    }
    if failed.is_empty() {
        eprintln!("xtask: lint: ok");
        return Ok(0);
    }
    eprintln!("xtask: lint: FAILED:");
    for command in failed {
        eprintln!("  {command}");
    }
    Ok(1)
}

fn commands(workspace: &Workspace) -> Vec<Command> {
    let with = |line: &str| {
        let mut command = cargo();
        command.args(line.split(' '));
        command
    };
    let mut commands = vec![with("fmt --all --check"), with("clippy --workspace --all-targets --all-features -- -D warnings")];
    let mut doc = with("doc --workspace --all-features --no-deps");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    commands.push(doc);
    let first = workspace.packages.iter().filter(|package| package.name == WITH_FEATURES[0]);
    for features in first.flat_map(|package| package.feature_sets()) {
        // Clippy is given `-D warnings` for the packages alone: what they depend on is checked
        // once, where RUSTFLAGS would have it checked anew.
        let mut command = with("clippy --quiet --no-default-features");
        command.args(WITH_FEATURES.iter().flat_map(|package| ["--package", package]));
        if !features.is_empty() {
            command.args(["--features", &features.join(",")]);
        }
        command.args(["--", "-D", "warnings"]);
        commands.push(command);
    }
    if has_cargo_deny() {
        commands.push(with("deny check --hide-inclusion-graph bans licenses sources"));
    }
    commands
}

fn has_cargo_deny() -> bool {
    let mut command = Command::new("cargo-deny");
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
