//! The example `orders` as a process of its own.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Deserialize;

/// How long anything may take that does not say otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What `--json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Summary {
    pub(crate) published: u64,
    pub(crate) repeats: u64,
    pub(crate) processed: u64,
    pub(crate) duplicates: u64,
    pub(crate) retries: u64,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) cds: u64,
    pub(crate) amount_cents: u64,
    pub(crate) elapsed_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct DeadLetters {
    pub(crate) nothing_to_charge: u64,
    pub(crate) exhausted: u64,
}

impl Summary {
    /// What came of the orders: processed, dead letters, CDs, cents.
    pub(crate) fn totals(&self) -> [u64; 4] {
        [self.processed, self.letters(), self.cds, self.amount_cents]
    }

    pub(crate) fn letters(&self) -> u64 {
        self.dead_letters.nothing_to_charge + self.dead_letters.exhausted
    }

    /// What was published must have come out, whatever happened on the way: the figures of the bundled 5,000 orders.
    #[track_caller]
    pub(crate) fn assert_adds_up(&self) {
        assert_eq!((self.published, self.repeats), (5_000, 250), "{self:?}");
        assert_eq!(self.dead_letters, DeadLetters { nothing_to_charge: 9, exhausted: 0 }, "{self:?}");
        assert_eq!(self.totals(), BUNDLED, "{self:?}");
        assert!(self.duplicates >= 250, "{self:?}");
    }
}

/// The totals of the bundled 5,000 orders.
pub(crate) const BUNDLED: [u64; 4] = [4_991, 9, 12_253, 18_444_161];

/// A process that is killed when this is dropped.
pub(crate) struct Orders {
    child: Child,
    log: Arc<Mutex<String>>,
    readers: Option<[JoinHandle<String>; 2]>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Orders {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::logging("", arguments)
    }

    /// With this as `RUST_LOG`; empty for the example's own choice.
    pub(crate) fn logging(filter: &str, arguments: &[&str]) -> Self {
        let mut command = command(arguments);
        if !filter.is_empty() {
            command.env("RUST_LOG", filter);
        }
        Self::spawn(command)
    }

    /// With the certificates in this file for the only ones that it trusts.
    pub(crate) fn trusting(authorities: &Path, arguments: &[&str]) -> Self {
        let mut command = command(arguments);
        command.env("SSL_CERT_FILE", authorities);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("orders starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (stdout, stderr) = (child.stdout.take().expect("it is piped"), child.stderr.take().expect("it is piped"));
        let shared = Arc::clone(&log);
        let readers = [
            std::thread::spawn(move || read_all(stdout, &Mutex::default())),
            std::thread::spawn(move || read_all(stderr, &shared)),
        ];
        Self { child, log, readers: Some(readers) }
    }

    /// Runs to its end.
    pub(crate) fn run(arguments: &[&str]) -> Ended {
        Self::start(arguments).ended(PATIENCE)
    }

    /// What it has written to standard error so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("the reader does not panic").clone()
    }

    /// Waits until it has written this to standard error.
    #[track_caller]
    pub(crate) fn wait_for_log(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.log().contains(text) {
            assert!(self.is_running() && Instant::now() < end, "no `{text}` in: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until SIGTERM would not simply end it.
    #[cfg(target_os = "linux")]
    #[track_caller]
    pub(crate) fn wait_until_it_handles_sigterm(&mut self) {
        let status = format!("/proc/{}/status", self.child.id());
        let handles = |status: &str| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & (1 << 14) != 0)
        };
        let end = Instant::now() + PATIENCE;
        while !std::fs::read_to_string(&status).is_ok_and(|status| handles(&status)) {
            assert!(self.is_running() && Instant::now() < end, "it does not handle SIGTERM: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("its state is known").is_none()
    }

    /// Sends it a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().expect("the command kill");
        assert!(sent.success());
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn ended(mut self, limit: Duration) -> Ended {
        let end = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("its state is known") {
                break status;
            }
            assert!(Instant::now() < end, "orders still runs after {limit:?}: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        };
        let readers = self.readers.take().expect("it ends once");
        let [stdout, stderr] = readers.map(|reader| reader.join().expect("the reader does not panic"));
        Ended { status, stdout, stderr }
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Ended {
    /// The summary of one that succeeded.
    #[track_caller]
    pub(crate) fn summary(&self) -> Summary {
        assert_eq!(self.status.code(), Some(0), "{self:?}");
        self.summary_in_any_case()
    }

    #[track_caller]
    pub(crate) fn summary_in_any_case(&self) -> Summary {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no summary ({error}) in {self:?}"))
    }

    /// What one that failed said.
    #[track_caller]
    pub(crate) fn complaint(&self) -> &str {
        assert!(!self.status.success(), "{self:?}");
        &self.stderr
    }
}

fn read_all(stream: impl Read, shared: &Mutex<String>) -> String {
    let mut all = String::new();
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned() + "\n";
        shared.lock().expect("nobody panics with it").push_str(&line);
        all.push_str(&line);
    }
    all
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).env_remove("RUST_LOG").env("NO_COLOR", "1");
    command
}

/// Beside the test programs: `target/debug/examples/orders`.
fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    let profile = test.parent().and_then(Path::parent).expect("tests are in target/PROFILE/deps");
    let binary = profile.join("examples").join(format!("orders{}", std::env::consts::EXE_SUFFIX));
    let build = "cargo build --all-features --example orders";
    assert!(
        binary.exists(),
        "the example `orders` is not built: `cargo test` builds it, and so does `{build}` ({})",
        binary.display()
    );
    binary
}
