//! Processes that need not be children: are they still the same ones, and how to end them.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

/// The variable by which the processes of a server are recognised, whatever group or session they
/// moved to. Its value is the server's directory.
pub(crate) const MARK: &str = "MQGUARD_XTASK_SERVER_DIR";

/// A process, and the time of its start: a pid alone is given to another process sooner or later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// The pid, which is also its process group's.
    pub(crate) pid: u32,
    /// When it started, as the system writes it.
    pub(crate) started: String,
}

impl Identity {
    /// The running process that has this pid now.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: started(pid)? })
    }

    /// Is it this very process that runs under the pid?
    pub(crate) fn is_alive(&self) -> bool {
        started(self.pid).is_some_and(|started| started == self.started)
    }

    /// Kills its whole process group, and the groups that its children lead.
    pub(crate) fn kill(&self) {
        if self.is_alive() {
            // Before the leader: afterwards nothing tells whose they were.
            children(self.pid).into_iter().for_each(|child| signal_group(child, Signal::KILL));
            signal_group(self.pid, Signal::KILL);
        }
    }
}

fn started(pid: u32) -> Option<String> {
    if Path::new("/proc/self/stat").exists() {
        return started_in_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    }
    let mut ps = Command::new("ps");
    let output = ps.args(["-o", "state=,lstart=", "-p", &pid.to_string()]).output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!line.is_empty() && !line.starts_with('Z')).then(|| line.chars().skip(1).collect())
}

/// The start time in `/proc/PID/stat`, in ticks since boot; none for a process that has ended and
/// only waits for its parent to notice.
fn started_in_stat(stat: &str) -> Option<String> {
    // The second field is the program's name in parentheses, which may itself have any character.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18).map(str::to_owned))?
}

/// The children of a process. Those of PostgreSQL leave its group, and overwrite their mark; without
/// `/proc` none are found.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        parent_in_stat(&stat) == Some(parent)
    };
    pids().into_iter().filter(is_child).collect()
}

fn parent_in_stat(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Every process there is; without `/proc` none.
fn pids() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Sends a signal to a whole process group; a group that is gone is fine.
pub(crate) fn signal_group(group: u32, signal: Signal) {
    if let Some(pid) = pid(group) {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

fn pid(raw: u32) -> Option<Pid> {
    i32::try_from(raw).ok().and_then(Pid::from_raw)
}

/// Kills every process that carries the mark of this directory or of one below it. Finds what left
/// its process group, such as a daemon that a server started; without `/proc` it finds nothing.
pub(crate) fn sweep(directory: &Path) {
    for raw in marked(directory) {
        if let Some(pid) = pid(raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// The living processes that carry the mark of this directory or of one below it.
pub(crate) fn marked(directory: &Path) -> Vec<u32> {
    pids().into_iter().filter(|&pid| pid != std::process::id() && carries_mark(pid, directory)).collect()
}

fn carries_mark(pid: u32, directory: &Path) -> bool {
    // Empty for a process that has ended, an error for one of another user.
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    environment.split(|&byte| byte == 0).any(|variable| {
        std::str::from_utf8(variable)
            .ok()
            .and_then(|v| v.strip_prefix(MARK)?.strip_prefix('='))
            .is_some_and(|marked| Path::new(marked).starts_with(directory))
    })
}

/// Waits until the condition holds, at most this long.
pub(crate) fn eventually(limit: Duration, condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn the_start_time_is_found_after_any_program_name() {
        let numbers: Vec<String> = (4..=30).map(|n| n.to_string()).collect();
        let stat = |state| format!("7 (a ) b (c) {state} {}", numbers.join(" "));
        assert_eq!(started_in_stat(&stat("S")), Some("22".to_owned()));
        assert_eq!(started_in_stat(&stat("Z")), None);
        assert_eq!(started_in_stat("nonsense"), None);
    }

    #[test]
    fn a_process_is_recognised_by_more_than_its_pid() -> Result<(), Box<dyn std::error::Error>> {
        let own = Identity::of(std::process::id()).ok_or("this process runs")?;
        assert!(own.is_alive());
        let other = Identity { started: "long ago".to_owned(), ..own };
        assert!(!other.is_alive());
        Ok(())
    }

    #[test]
    fn a_child_that_left_the_group_is_killed_too() -> Result<(), Box<dyn std::error::Error>> {
        let mut shell = Command::new("sh");
        // The shell stays, waiting: it has something to do afterwards.
        let mut leader = shell.args(["-c", "setsid -w sleep 60; true"]).process_group(0).spawn()?;
        let identity = Identity::of(leader.id()).ok_or("it runs")?;
        let sleeps = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
        let has_left = eventually(Duration::from_secs(5), || children(leader.id()).iter().any(sleeps));
        let left = children(leader.id());
        identity.kill();
        leader.wait()?;
        assert!(has_left || !Path::new("/proc/self").exists());
        assert!(eventually(Duration::from_secs(5), || left.iter().all(|&pid| started(pid).is_none())));
        Ok(())
    }

    #[test]
    fn a_marked_process_is_found_and_swept() -> Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let mut sleep = Command::new("sleep");
        let mut child = sleep.arg("60").env(MARK, directory.path().join("server")).spawn()?;
        let found = eventually(Duration::from_secs(5), || marked(directory.path()) == [child.id()]);
        sweep(directory.path());
        child.kill()?;
        child.wait()?;
        assert!(found || !Path::new("/proc/self").exists());
        assert!(marked(directory.path()).is_empty());
        Ok(())
    }
}
