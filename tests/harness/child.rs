use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A process that runs one ignored test of this test binary, for what only a process can show: signals and the environment.
pub struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// What it wrote so far.
    pub said: Vec<String>,
}

impl Process {
    pub fn start(test: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_with(test, environment.iter().map(|(name, value)| (*name, OsStr::new(*value))))
    }

    pub fn start_with<'a>(test: &str, environment: impl IntoIterator<Item = (&'a str, &'a OsStr)>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--ignored", "--nocapture"]).env("RUST_BACKTRACE", "0").stdout(Stdio::piped());
        command.env_remove("MQGUARD_BROKER").env_remove("MQGUARD_REDIS").env(CHILD, "1");
        let mut child = command.envs(environment).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, said: Vec::new() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads until the process has said this, or has ended.
    pub fn until(&mut self, word: &str) {
        let mut line = String::new();
        while !self.said.iter().any(|said| said == word) {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it never said `{word}`: {:?}", self.said);
            self.said.push(line.trim_end().to_owned());
        }
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Sends a signal again and again until the process has ended, since signals that come too fast count as one.
    pub fn signal_until_end(&mut self, name: &str) {
        while self.child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(200));
            self.signal(name);
        }
    }

    /// Waits for its end; returns how it ended and how long that took.
    pub fn end(&mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        for line in self.lines.by_ref().lines() {
            self.said.push(line.unwrap());
        }
        (self.child.wait().unwrap(), began.elapsed())
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn count(&self, word: &str) -> usize {
        self.said.iter().filter(|said| *said == word).count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended, unless a test failed.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

const CHILD: &str = "MQGUARD_TEST_CHILD";

/// Whether this process was started by [`Process::start`], and not by somebody who runs ignored tests.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}
