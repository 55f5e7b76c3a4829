//! `cargo xtask test`: every test, with the servers it needs.

mod plan;
mod report;
mod turns;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{bail, ensure};
use rustix::process::Signal;

use crate::process::{self, Identity};
use crate::servers::{self, Guarded, Kind};
use crate::versions::{self, Choice, Version};
use crate::workspace::{Workspace, cargo};
use crate::{python, run, signals};
use plan::Step;
use report::Outcomes;
use turns::{Place, Turn};

/// The variable that names the directory in which the servers keep everything, logs too.
const DIRECTORY_VARIABLE: &str = "MQGUARD_TEST_SERVERS_DIR";

/// The variable that names a directory of programs to start further RabbitMQ nodes with, when it is not the machine's own that is tested.
const PROGRAMS_VARIABLE: &str = "MQGUARD_TEST_RABBITMQ_BIN";

/// Runs the tests; their exit code. What became of them is written into a page, if there is to be one.
pub(crate) fn run(choice: Option<Choice>, page: Option<&Path>, extra: &[String]) -> anyhow::Result<u8> {
    let target_directory = Workspace::load()?.target_directory;
    let mut tests = Tests::start(&target_directory)?;
    tests.page = page.map(Path::to_owned);
    let turns = tests.turns(choice, !extra.is_empty())?;
    for turn in &turns {
        if !tests.take(turn, extra)? {
            break;
        }
    }
    tests.report()
}

/// A run of the tests, on one version of RabbitMQ after another. The other servers stay the same.
struct Tests {
    target_directory: PathBuf,
    base: tempfile::TempDir,
    /// What the tests are told, but for what RabbitMQ it is.
    variables: BTreeMap<String, OsString>,
    /// Stopped before `base` is removed: by [`Tests::report`], or as the first of the two.
    others: Option<Guarded>,
    results: Vec<(String, u8, f32)>,
    skipped: Vec<String>,
    /// Where it is written which tests passed.
    page: Option<PathBuf>,
    /// Noted for the page: the RabbitMQ, and which tests passed on it.
    outcomes: Vec<(String, Outcomes)>,
}

impl Tests {
    /// Starts the servers but RabbitMQ.
    fn start(target_directory: &Path) -> anyhow::Result<Self> {
        let kinds = || servers::ALL.into_iter().filter(|kind| !std::ptr::eq(*kind, servers::RABBITMQ));
        let (given, needed): (Vec<&Kind>, Vec<&Kind>) = kinds().partition(|kind| is_set(kind.test_variable));
        given.iter().for_each(|kind| tell_given(kind));
        servers::install(&needed)?;
        let mut variables = BTreeMap::new();
        if let Some(python) = python::with_pika(target_directory)? {
            variables.insert(python::VARIABLE.to_owned(), python.into());
        }
        let base = tempfile::Builder::new().prefix("mqguard-test-").tempdir()?;
        variables.insert(DIRECTORY_VARIABLE.to_owned(), base.path().into());
        let mut guarded = Guarded::new()?;
        guarded.watchdog().directory(base.path())?;
        for kind in needed {
            start(&mut guarded, kind, base.path(), None, &mut variables)?;
        }
        Ok(Self {
            target_directory: target_directory.to_owned(),
            base,
            variables,
            others: Some(guarded),
            results: Vec::new(),
            skipped: Vec::new(),
            page: None,
            outcomes: Vec::new(),
        })
    }

    /// Which tests are to run on which RabbitMQ.
    fn turns(&self, choice: Option<Choice>, has_extra: bool) -> anyhow::Result<Vec<Turn>> {
        if is_set(servers::RABBITMQ.test_variable) {
            ensure!(choice.is_none(), "{} names a RabbitMQ: there is no version to choose", servers::RABBITMQ.test_variable);
            tell_given(servers::RABBITMQ);
            return Ok(vec![Turn::given()]);
        }
        if !matches!(choice, Some(Choice::One(_))) {
            servers::install(&[servers::RABBITMQ])?;
        }
        Ok(turns::turns(choice, has_extra, versions::installed().as_deref()))
    }

    /// Runs the tests of a turn. False when there is no sense in going on.
    fn take(&mut self, turn: &Turn, extra: &[String]) -> anyhow::Result<bool> {
        let mut variables = self.variables.clone();
        let mut guarded = Guarded::new()?;
        let mut name = "the RabbitMQ that was named".to_owned();
        if turn.places != [Place::Given] {
            let Some(version) = self.obtain(turn)? else { return Ok(true) };
            name = format!("RabbitMQ {}", version.name);
            let base = self.base.path().join(&version.name);
            start(&mut guarded, servers::RABBITMQ, &base, version.programs.as_deref(), &mut variables)?;
            if let Some(programs) = version.programs {
                variables.insert(PROGRAMS_VARIABLE.to_owned(), programs.into());
            }
        }
        let mut outcomes = self.page.is_some().then(Outcomes::default);
        for step in turn.suite.steps(extra) {
            let mut command = cargo();
            command.args(&step.arguments).envs(&variables);
            let begun = Instant::now();
            let code = run_step(&mut command, &step, &mut guarded, outcomes.as_mut())?;
            self.results.push((format!("{} on {name}", step.name), code, begun.elapsed().as_secs_f32()));
            if code != 0 && step.is_build {
                return Ok(false);
            }
        }
        self.outcomes.extend(outcomes.map(|outcomes| (name, outcomes)));
        Ok(true)
    }

    /// The first version that can be had here; what cannot is remembered.
    fn obtain(&mut self, turn: &Turn) -> anyhow::Result<Option<Version>> {
        for (n, place) in turn.places.iter().enumerate() {
            let release = match place {
                Place::Given => continue,
                Place::Installed => {
                    let name = versions::installed().unwrap_or_else(|| "of this machine".to_owned());
                    return Ok(Some(Version { name, programs: None }));
                }
                Place::Release(release) => *release,
            };
            match versions::obtain(release, &self.target_directory, self.base.path()) {
                Ok(version) => {
                    let rest = turn.places[n + 1..].iter().filter_map(Place::version);
                    self.skipped.extend(rest.map(|version| format!("RabbitMQ {version}: `--rabbitmq all` runs on it too")));
                    return Ok(Some(version));
                }
                Err(error) => {
                    signals::check()?;
                    let reason = format!("RabbitMQ {}: {error:#}", release.version);
                    eprintln!("xtask: skipped: {reason}");
                    self.skipped.push(reason);
                }
            }
        }
        Ok(None)
    }

    /// Stops the servers, and says how everything went; the exit code.
    fn report(mut self) -> anyhow::Result<u8> {
        self.others = None;
        for (name, code, seconds) in &self.results {
            let verdict = if *code == 0 { "ok".to_owned() } else { format!("FAILED, exit code {code}") };
            eprintln!("xtask: {name}: {verdict} ({seconds:.1} s)");
        }
        for reason in &self.skipped {
            eprintln!("xtask: skipped: {reason}");
        }
        if self.results.is_empty() {
            bail!("there was nothing to run the tests on");
        }
        if let Some(page) = &self.page {
            report::write(page, &self.outcomes)?;
        }
        Ok(self.results.iter().map(|(_, code, _)| *code).find(|code| *code != 0).unwrap_or(0))
    }
}

impl Drop for Tests {
    fn drop(&mut self) {
        self.others = None;
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn tell_given(kind: &Kind) {
    eprintln!("xtask: {}: using the one that {} names", kind.name, kind.test_variable);
}

/// Prints what a command prints, and keeps it.
fn pass_on(output: ChildStdout) -> Vec<String> {
    let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).inspect(|line| println!("{line}")).collect()
}

/// Starts a server, and adds the variables that tell of it.
fn start(
    guarded: &mut Guarded,
    kind: &Kind,
    base: &Path,
    programs: Option<&Path>,
    variables: &mut BTreeMap<String, OsString>,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    let server = guarded.start_with(kind, base, programs)?;
    eprintln!("xtask: {} runs at {} ({:.1} s)", server.name, server.url, begun.elapsed().as_secs_f32());
    variables.insert(kind.test_variable.to_owned(), server.url.clone().into());
    variables.extend(server.variables.iter().map(|(name, _, value)| (name.clone(), value.into())));
    Ok(())
}

/// Runs one step, which ends with this command whatever happens; its exit code. What it prints may be read along.
fn run_step(command: &mut Command, step: &Step, guarded: &mut Guarded, outcomes: Option<&mut Outcomes>) -> anyhow::Result<u8> {
    // Without the variables, which were shown above.
    eprintln!("xtask: $ cargo {}", step.arguments.join(" "));
    if outcomes.is_some() {
        command.stdout(Stdio::piped());
    }
    let mut child = run::spawn(command)?;
    let reader = child.stdout.take().map(|output| std::thread::spawn(move || pass_on(output)));
    let group = child.id();
    if let Some(leader) = Identity::of(group) {
        guarded.watchdog().group(&leader)?;
    }
    let status = run::wait(&mut child);
    // A test may have left a process of its own.
    process::signal_group(group, Signal::KILL);
    guarded.watchdog().gone(group)?;
    if let (Some(outcomes), Some(Ok(lines))) = (outcomes, reader.map(JoinHandle::join)) {
        lines.iter().for_each(|line| outcomes.note(line));
    }
    Ok(status?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
