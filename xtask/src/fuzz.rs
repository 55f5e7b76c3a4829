//! `cargo xtask fuzz`: runs the fuzz targets, with the stable compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::install::{self, Program};
use crate::run::foreground;
use crate::workspace::{Workspace, cargo};

/// The instrumentation that libFuzzer works by, as cargo-fuzz asks for it without a sanitizer: safe code needs none.
/// Source: <https://clang.llvm.org/docs/SanitizerCoverage.html>.
const INSTRUMENTATION: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

/// libFuzzer is compiled from its sources.
const COMPILER: Program = Program { name: "c++", places: &[], avoid: &[], package: "g++", variable: "CXX" };

/// Runs `targets`, all when there are none, with so many inputs each, made from `seed`.
pub(crate) fn run(targets: &[String], runs: u64, seed: u32) -> anyhow::Result<u8> {
    let workspace = Workspace::load()?;
    let known = known(&workspace.workspace_root)?;
    if let Some(unknown) = targets.iter().find(|target| !known.contains(target)) {
        bail!("there is no fuzz target `{unknown}`: there are {}", known.join(", "));
    }
    let targets = if targets.is_empty() { &known } else { targets };
    install::ensure(&[&COMPILER])?;
    let programs = build(&workspace)?;
    for target in targets {
        fuzz_one(&workspace, &programs, target, &[format!("-runs={runs}"), format!("-seed={seed}")])?;
    }
    eprintln!("xtask: no finding: {runs} inputs each for {}", targets.join(", "));
    Ok(0)
}

fn known(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in root.join("fuzz/fuzz_targets").read_dir().context("fuzz/fuzz_targets")? {
        if let Some(name) = entry?.path().file_stem() {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Builds all targets; where they are.
fn build(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let directory = workspace.target_directory.join("fuzz");
    let host = host()?;
    let mut command = cargo();
    command
        .args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host])
        .arg("--target-dir")
        .arg(&directory);
    // With `--target`, what only the build runs is not instrumented.
    command.env("CARGO_ENCODED_RUSTFLAGS", INSTRUMENTATION.join("\x1f")).current_dir(&workspace.workspace_root);
    eprintln!("xtask: building the fuzz targets");
    ensure!(foreground(&mut command)?.success(), "the fuzz targets do not build");
    Ok(directory.join(host).join("release"))
}

fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").args(["--version", "--verbose"]).output().context("rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc --version --verbose` names no host")?.to_owned())
}

fn fuzz_one(workspace: &Workspace, programs: &Path, target: &str, how: &[String]) -> anyhow::Result<()> {
    // New inputs stay below the target directory; the corpus in the repository is only read.
    let found = workspace.target_directory.join("fuzz/corpus").join(target);
    let artifacts = workspace.target_directory.join("fuzz/artifacts").join(target);
    for directory in [&found, &artifacts] {
        std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    eprintln!("xtask: fuzzing {target}");
    let mut command = Command::new(programs.join(target));
    command.arg(&found);
    let kept = workspace.workspace_root.join("fuzz/corpus").join(target);
    if kept.is_dir() {
        command.arg(kept);
    }
    command.args(how).args(["-timeout=10", "-print_final_stats=1", "-verbosity=0"]);
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    ensure!(
        foreground(&mut command)?.success(),
        "{target}: a finding. The input is in {}; once it is mended, keep it in fuzz/corpus/{target}",
        artifacts.display()
    );
    Ok(())
}
