//! `cargo xtask test`: every test, with the servers it needs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;

use crate::process::{self, Identity};
use crate::servers::{self, Guarded, Kind};
use crate::workspace::{Workspace, cargo};
use crate::{python, run};

/// The variable that names the directory in which the servers keep everything, logs too.
const DIRECTORY_VARIABLE: &str = "MQGUARD_TEST_SERVERS_DIR";

/// Arguments of `cargo test` that choose among the kinds of targets.
const TARGETS: [&str; 11] = [
    "--lib",
    "--bin",
    "--bins",
    "--test",
    "--tests",
    "--example",
    "--examples",
    "--bench",
    "--benches",
    "--all-targets",
    "--doc",
];

/// Runs the tests; their exit code.
pub(crate) fn run(extra: &[String]) -> anyhow::Result<u8> {
    let workspace = Workspace::load()?;
    let (given, needed): (Vec<&Kind>, Vec<&Kind>) = servers::ALL.into_iter().partition(|kind| is_set(kind.test_variable));
    for kind in given {
        eprintln!("xtask: {}: using the one that {} names", kind.name, kind.test_variable);
    }
    servers::install(&needed)?;

    let mut variables = BTreeMap::<&str, OsString>::new();
    if let Some(python) = python::with_pika(&workspace.target_directory)? {
        variables.insert(python::VARIABLE, python.into());
    }
    let base = tempfile::Builder::new().prefix("mqguard-test-").tempdir()?;
    let mut guarded = Guarded::new()?;
    guarded.watchdog().directory(base.path())?;
    for kind in &needed {
        let begun = Instant::now();
        let server = guarded.start(kind, base.path())?;
        let seconds = begun.elapsed().as_secs_f32();
        eprintln!("xtask: {} runs at {} ({seconds:.1} s)", server.name, server.url);
    }
    for (kind, server) in needed.iter().zip(guarded.servers()) {
        variables.insert(kind.test_variable, server.url.clone().into());
    }
    let servers = guarded.servers().to_vec();
    for (name, _, value) in servers.iter().flat_map(|server| &server.variables) {
        variables.insert(name, value.into());
    }
    variables.insert(DIRECTORY_VARIABLE, base.path().into());

    let mut results = Vec::new();
    for step in plan(extra) {
        let mut command = cargo();
        command.args(&step.arguments).envs(&variables);
        let begun = Instant::now();
        let code = run_step(&mut command, &step, &mut guarded)?;
        results.push((step.name, code, begun.elapsed().as_secs_f32()));
        if code != 0 && step.is_build {
            break;
        }
    }
    drop(guarded);
    for (name, code, seconds) in &results {
        let verdict = if *code == 0 { "ok".to_owned() } else { format!("FAILED, exit code {code}") };
        eprintln!("xtask: {name}: {verdict} ({seconds:.1} s)");
    }
    Ok(results.iter().map(|(_, code, _)| *code).find(|code| *code != 0).unwrap_or(0))
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Runs one step, which ends with this command whatever happens; its exit code.
fn run_step(command: &mut Command, step: &Step, guarded: &mut Guarded) -> anyhow::Result<u8> {
    // Without the variables, which were shown above.
    eprintln!("xtask: $ cargo {}", step.arguments.join(" "));
    let mut child = run::spawn(command)?;
    let group = child.id();
    if let Some(leader) = Identity::of(group) {
        guarded.watchdog().group(&leader)?;
    }
    let status = run::wait(&mut child);
    // A test may have left a process of its own.
    process::signal_group(group, Signal::KILL);
    guarded.watchdog().gone(group)?;
    Ok(status?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// One run of cargo.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    name: &'static str,
    arguments: Vec<String>,
    /// Nothing after it makes sense if it fails.
    is_build: bool,
}

/// The runs of cargo for these extra arguments.
///
/// Documentation tests run by themselves: there, "ignored" means an example that is not meant to
/// run, and `--include-ignored` would run it. The build comes first because it also builds the
/// examples, which `cargo test --tests` does not, and tests may run them.
fn plan(extra: &[String]) -> Vec<Step> {
    let mut halves = extra.splitn(2, |argument| argument == "--");
    let for_cargo = halves.next().unwrap_or_default();
    let for_tests = halves.next().unwrap_or_default();

    let mut common = vec!["test".to_owned()];
    if !for_cargo.iter().any(|a| is_option(a, &["--package"]) || is_short(a, 'p')) {
        common.push("--workspace".to_owned());
    }
    let features = ["--features", "--all-features", "--no-default-features"];
    if !for_cargo.iter().any(|a| is_option(a, &features) || is_short(a, 'F')) {
        common.push("--all-features".to_owned());
    }
    let step = |name, more: &[&str], include_ignored: bool| {
        let mut arguments = common.clone();
        arguments.extend(more.iter().map(ToString::to_string));
        arguments.extend_from_slice(for_cargo);
        if include_ignored || !for_tests.is_empty() {
            arguments.push("--".to_owned());
        }
        if include_ignored {
            arguments.push("--include-ignored".to_owned());
        }
        arguments.extend_from_slice(for_tests);
        Step { name, arguments, is_build: false }
    };
    if for_cargo.iter().any(|argument| is_option(argument, &TARGETS)) {
        let has_doc = for_cargo.iter().any(|argument| argument == "--doc");
        return vec![step("tests", &["--no-fail-fast"], !has_doc)];
    }
    let mut steps =
        vec![Step { is_build: true, ..step("build", &["--no-run"], false) }, step("tests", &["--no-fail-fast", "--tests"], true)];
    // A program has no documentation tests, and cargo calls it an error to ask for them.
    let only_xtask = ["-p xtask", "--package xtask", "--package=xtask", "-pxtask"];
    if !only_xtask.iter().any(|only| for_cargo.join(" ").starts_with(only)) {
        steps.push(step("documentation tests", &["--no-fail-fast", "--doc"], false));
    }
    steps
}

fn is_option(argument: &str, names: &[&str]) -> bool {
    names.contains(&argument.split('=').next().unwrap_or_default())
}

fn is_short(argument: &str, name: char) -> bool {
    argument.strip_prefix('-').is_some_and(|rest| rest.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Vec<String> {
        let extra: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
        plan(&extra).iter().map(|step| step.arguments.join(" ")).collect()
    }

    #[test]
    fn without_arguments_everything_runs() {
        assert_eq!(
            planned(""),
            [
                "test --workspace --all-features --no-run",
                "test --workspace --all-features --no-fail-fast --tests -- --include-ignored",
                "test --workspace --all-features --no-fail-fast --doc",
            ]
        );
    }

    #[test]
    fn a_package_and_features_replace_all_of_them() {
        assert_eq!(
            planned("-p mqguard --features=redis name -- --nocapture"),
            [
                "test --no-run -p mqguard --features=redis name -- --nocapture",
                "test --no-fail-fast --tests -p mqguard --features=redis name \
                 -- --include-ignored --nocapture",
                "test --no-fail-fast --doc -p mqguard --features=redis name -- --nocapture",
            ]
        );
    }

    #[test]
    fn a_chosen_target_runs_alone() {
        assert_eq!(planned("--test retry"), ["test --workspace --all-features --no-fail-fast --test retry -- --include-ignored"]);
        assert_eq!(planned("--doc"), ["test --workspace --all-features --no-fail-fast --doc"]);
    }

    #[test]
    fn a_program_has_no_documentation_tests() {
        assert_eq!(planned("-p xtask").len(), 2);
    }

    #[test]
    fn a_profile_is_not_a_package() {
        assert!(planned("--profile ci").iter().all(|line| line.contains("--workspace")));
    }
}
