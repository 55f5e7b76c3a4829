//! The example `payments` as a process of its own.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

/// What `--json` prints.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Summary {
    pub(crate) payments: u64,
    pub(crate) repeats: u64,
    pub(crate) transferred: u64,
    pub(crate) dead_letters: BTreeMap<String, u64>,
    pub(crate) repeated_letters: u64,
    pub(crate) cut_short: u64,
    pub(crate) moved_cents: i64,
    pub(crate) held_cents: i64,
    pub(crate) problems: Vec<String>,
    pub(crate) elapsed_ms: u64,
    /// Of a run without kills.
    pub(crate) duplicates: Option<u64>,
    pub(crate) retries: Option<u64>,
    /// Of a run with kills.
    pub(crate) kills: Option<u64>,
    pub(crate) seed: Option<u64>,
}

impl Summary {
    fn letters(&self, reason: &str) -> u64 {
        self.dead_letters.get(reason).copied().unwrap_or_default()
    }

    /// Every payment has taken effect once, or not at all and has a letter: the audit says so, and the figures are as they must be.
    /// A payment that was being made in four workers when they were killed is condemned with the guilty; it may be a few.
    #[track_caller]
    pub(crate) fn assert_exact(&self, payments: u64, kills: Option<u64>) {
        assert_eq!(self.problems, [""; 0], "{self:?}");
        assert_eq!((self.payments, self.repeats, self.kills), (payments, payments / 20, kills), "{self:?}");
        let crash_loops = self.letters("crash-loop");
        assert_eq!(self.transferred + self.letters("fatal") + crash_loops, payments, "{self:?}");
        assert!(self.transferred + crash_loops >= payments - payments / 100 && crash_loops <= payments / 100, "{self:?}");
        assert_eq!(self.held_cents, 100 * 1_000_000, "{self:?}");
        assert!(self.moved_cents > 0 && (kills.is_some() || self.repeated_letters + self.cut_short == 0), "{self:?}");
    }

    /// One line for whoever measures.
    pub(crate) fn tell(&self, what: &str) {
        eprintln!(
            "payments, {what}: {} in {} ms, {:?} kills by seed {:?}, {} cut short, letters {:?} and {} repeated",
            self.payments, self.elapsed_ms, self.kills, self.seed, self.cut_short, self.dead_letters, self.repeated_letters
        );
    }
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The summary of one that succeeded.
    #[track_caller]
    pub(crate) fn summary(&self) -> Summary {
        assert_eq!(self.status.code(), Some(0), "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no summary ({error}) in {self:?}"))
    }
}

/// Runs it to its end, or to that of our patience.
#[track_caller]
pub(crate) fn run(arguments: &[&str]) -> Ended {
    const PATIENCE: Duration = Duration::from_secs(300);
    let [mut stdout, mut stderr] = [(); 2].map(|()| tempfile::tempfile().expect("a file"));
    let to = |file: &File| Stdio::from(file.try_clone().expect("a handle"));
    let mut command = Command::new(binary());
    command.args(arguments).env_remove("RUST_LOG").env("NO_COLOR", "1");
    let mut child = command.stdin(Stdio::null()).stdout(to(&stdout)).stderr(to(&stderr)).spawn().expect("payments starts");
    let end = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().expect("its state is known") {
            Some(status) => break status,
            // Its worker ends with it.
            None if Instant::now() > end => child.kill().expect("it can be killed"),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    Ended { status, stdout: read(&mut stdout), stderr: read(&mut stderr) }
}

fn read(file: &mut File) -> String {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("it wrote text");
    text
}

/// Beside the test programs: `target/debug/examples/payments`.
fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    let profile = test.parent().and_then(Path::parent).expect("tests are in target/PROFILE/deps");
    let binary = profile.join("examples").join(format!("payments{}", std::env::consts::EXE_SUFFIX));
    let build = "cargo build --all-features --example payments";
    assert!(binary.exists(), "the example is not built: `cargo test` builds it, and so does `{build}` ({})", binary.display());
    binary
}
