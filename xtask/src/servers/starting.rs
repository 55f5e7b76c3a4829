//! Starting one server: its processes, their output, the wait until it answers.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::{Kind, Server};
use crate::install::Program;
use crate::process::{self, Identity};
use crate::watchdog::{self, Watchdog};
use crate::{run, signals};

/// How long a server may take until it answers.
const LIMIT: Duration = Duration::from_secs(60);
/// How long one question to a server may take.
const PROBE_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);
/// How often a server is started anew when somebody else took a port that was free.
const ATTEMPTS: usize = 3;
/// How much of the logs an error shows.
const TAIL_LINES: usize = 40;

/// A server that is about to run; ends with this value unless it is complete.
#[derive(Debug)]
pub(crate) struct Starting<'a> {
    directory: &'a Path,
    programs: Option<&'a Path>,
    watchdog: &'a mut Watchdog,
    children: Vec<(String, Child)>,
    processes: Vec<Identity>,
    complete: bool,
}

/// Starts a server in this directory, which becomes its own.
pub(super) fn start(kind: &Kind, directory: &Path, programs: Option<&Path>, watchdog: &mut Watchdog) -> anyhow::Result<Server> {
    let mut attempt = 1;
    loop {
        match attempt_to_start(kind, directory, programs, watchdog) {
            Err(error) if attempt < ATTEMPTS && lost_a_port(&format!("{error:#}")) => {
                eprintln!("xtask: {} lost a port to somebody; trying others", kind.name);
                attempt += 1;
            }
            result => return result,
        }
    }
}

fn lost_a_port(error: &str) -> bool {
    let error = error.to_ascii_lowercase();
    ["eaddrinuse", "address already in use", "address in use"].iter().any(|e| error.contains(e))
}

fn attempt_to_start(kind: &Kind, directory: &Path, programs: Option<&Path>, watchdog: &mut Watchdog) -> anyhow::Result<Server> {
    // What an earlier one of which no record is left has there, running or not.
    watchdog::end(std::iter::empty(), &[directory.to_owned()]);
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    watchdog.directory(directory)?;
    let mut starting = Starting { directory, programs, watchdog, children: Vec::new(), processes: Vec::new(), complete: false };
    let started = (kind.start)(&mut starting)?;
    starting.complete = true;
    Ok(Server {
        name: kind.name.to_owned(),
        url: started.url,
        port: started.port,
        directory: directory.to_owned(),
        processes: std::mem::take(&mut starting.processes),
        variables: started.variables,
    })
}

impl Starting<'_> {
    /// Where the server keeps everything.
    pub(super) fn directory(&self) -> &Path {
        self.directory
    }

    /// Where a program of the server is.
    pub(super) fn program(&self, program: &Program) -> anyhow::Result<PathBuf> {
        match self.programs {
            Some(directory) => Ok(directory.join(program.name)),
            None => program.require(),
        }
    }

    /// Makes a file in the server's directory.
    pub(super) fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let file = self.directory.join(name);
        fs::write(&file, text).with_context(|| file.display().to_string())?;
        Ok(file)
    }

    /// Makes a directory in the server's directory.
    pub(super) fn create_dir(&self, name: &str) -> anyhow::Result<PathBuf> {
        let directory = self.directory.join(name);
        fs::create_dir(&directory).with_context(|| directory.display().to_string())?;
        Ok(directory)
    }

    /// Runs a command to its end that makes something for the server; its output goes to `NAME.log`.
    pub(super) fn run(&self, name: &str, command: &mut Command) -> anyhow::Result<()> {
        self.prepare(name, command)?;
        let status = run::foreground(command)?;
        ensure!(status.success(), "{name} failed ({status})\n{}", tails(self.directory));
        Ok(())
    }

    fn prepare(&self, name: &str, command: &mut Command) -> anyhow::Result<()> {
        let log = File::create(self.directory.join(format!("{name}.log")))?;
        command.stdout(log.try_clone()?).stderr(log);
        command.current_dir(self.directory).env(process::MARK, self.directory);
        Ok(())
    }

    /// Starts a process of the server, in the foreground of a process group of its own; its output
    /// goes to `NAME.log`.
    pub(super) fn spawn(&mut self, name: &str, command: &mut Command) -> anyhow::Result<()> {
        self.prepare(name, command)?;
        let child = run::spawn(command)?;
        let pid = child.id();
        self.children.push((name.to_owned(), child));
        if let Some(identity) = Identity::of(pid) {
            self.watchdog.group(&identity)?;
            self.processes.push(identity);
        }
        Ok(())
    }

    /// Waits until the probe succeeds; an error as soon as one of the processes has ended.
    pub(super) fn wait(&mut self, probe: impl Fn() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            signals::check()?;
            let answer = probe();
            if answer.is_ok() {
                return Ok(());
            }
            for (name, child) in &mut self.children {
                if let Some(status) = child.try_wait()? {
                    bail!("{name} has ended ({status})\n{}", tails(self.directory));
                }
            }
            if Instant::now() > deadline {
                let limit = LIMIT.as_secs();
                return answer.with_context(|| format!("no answer within {limit} s\n{}", tails(self.directory)));
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        if self.complete {
            return;
        }
        watchdog::end(self.processes.iter(), &[self.directory.to_owned()]);
        for (_, child) in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
            let _ = self.watchdog.gone(child.id());
        }
    }
}

/// A connection for a probe, which must not hang.
pub(super) fn connect(port: u16) -> anyhow::Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, PROBE_LIMIT)?;
    stream.set_read_timeout(Some(PROBE_LIMIT))?;
    stream.set_write_timeout(Some(PROBE_LIMIT))?;
    Ok(stream)
}

/// The ends of all the logs in the directory.
fn tails(directory: &Path) -> String {
    let Ok(entries) = fs::read_dir(directory) else {
        return String::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut text = String::new();
    for path in paths {
        if path.is_dir() {
            text += &tails(&path);
        } else if path.extension().is_some_and(|extension| extension == "log") {
            let log = fs::read(&path).unwrap_or_default();
            text += &format!("--- {}\n{}", path.display(), tail(&String::from_utf8_lossy(&log)));
        }
    }
    text
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let shown = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    shown.iter().map(|line| format!("{line}\n")).collect()
}

/// The port of something that sends this to the first who connects.
#[cfg(test)]
pub(super) fn fake(answer: &'static [u8]) -> std::io::Result<u16> {
    use std::io::Write as _;
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || listener.accept().and_then(|(mut stream, _)| stream.write_all(answer)));
    Ok(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_the_end_of_every_log() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let lines: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
        fs::write(directory.path().join("a.log"), lines.join("\n"))?;
        fs::create_dir(directory.path().join("log"))?;
        fs::write(directory.path().join("log/b.log"), "other\n")?;
        fs::write(directory.path().join("data"), "secret")?;
        let text = tails(directory.path());
        assert!(text.contains("line 99\n") && text.contains("line 60\n"), "{text}");
        assert!(!text.contains("line 59\n") && !text.contains("secret"), "{text}");
        assert!(text.contains("other\n"), "{text}");
        Ok(())
    }

    #[test]
    fn a_lost_port_is_recognised() {
        assert!(lost_a_port("Could not create server TCP socket: bind: Address already in use"));
        assert!(lost_a_port("{error,eaddrinuse}"));
        assert!(lost_a_port("[ERROR] Can't start server: Bind on TCP/IP port: Address already in use"));
        assert!(lost_a_port("LOG:  could not bind IPv4 address \"127.0.0.1\": Address already in use"));
        assert!(!lost_a_port("no space left on device"));
    }
}
