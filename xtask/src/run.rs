//! Running a command in the foreground: shown before it runs, ended with everything it started.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::Signal;

use crate::{process, signals};

/// How long a command may take to end by itself after a signal.
const GRACE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// The command as one could type it.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| Some(format!("{}={}", name.display(), quoted(value?))));
    let words = std::iter::once(program(command)).chain(command.get_args()).map(quoted);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// Cargo says where it is to those it runs; one would type its name.
fn program(command: &Command) -> &OsStr {
    match std::env::var_os("CARGO") {
        Some(cargo) if cargo == command.get_program() => OsStr::new("cargo"),
        _ => command.get_program(),
    }
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Prints the command, runs it to its end and gives its status.
pub(crate) fn announced(command: &mut Command) -> anyhow::Result<ExitStatus> {
    eprintln!("xtask: $ {}", shown(command));
    foreground(command)
}

/// Runs the command in a process group of its own. A signal to this process is passed on to the
/// whole group; whatever of the group outlives the command is killed.
pub(crate) fn foreground(command: &mut Command) -> anyhow::Result<ExitStatus> {
    let mut child = spawn(command)?;
    let group = child.id();
    let status = wait(&mut child);
    process::signal_group(group, Signal::KILL);
    status
}

/// Starts the command in a process group of its own, without an input.
pub(crate) fn spawn(command: &mut Command) -> anyhow::Result<Child> {
    command.stdin(Stdio::null()).process_group(0).spawn().with_context(|| format!("cannot run {}", shown(command)))
}

/// Waits for a child made by [`spawn`].
pub(crate) fn wait(child: &mut Child) -> anyhow::Result<ExitStatus> {
    let mut kill_at = None;
    loop {
        let ended = child.try_wait()?;
        if let Some(interrupted) = signals::received() {
            if ended.is_some() {
                return Err(interrupted.into());
            }
            match kill_at {
                None => {
                    let signal = Signal::from_named_raw(interrupted.0).unwrap_or(Signal::TERM);
                    process::signal_group(child.id(), signal);
                    kill_at = Some(Instant::now() + GRACE);
                }
                Some(at) if Instant::now() > at => {
                    process::signal_group(child.id(), Signal::KILL);
                }
                Some(_) => {}
            }
        } else if let Some(status) = ended {
            return Ok(status);
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("cargo");
        command.args(["test", "--", "two words", "it's"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(shown(&command), r"RUSTDOCFLAGS='-D warnings' cargo test -- 'two words' 'it'\''s'");
    }
}
