//! A second process that ends the servers when this one could not, not even in a guard (SIGKILL).
//!
//! It reads what there is to end from a pipe. The pipe closes when the writer ends in whatever way;
//! without a word of farewell before it, the watchdog ends and removes everything it was told.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::process::{self, Identity};

/// The hidden subcommand that is the watchdog.
pub(crate) const SUBCOMMAND: &str = "__watchdog";

/// One line of the pipe.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// This process group is to be ended.
    Group(Identity),
    /// This process group has ended.
    Gone(u32),
    /// The marked processes of this directory are to be ended, and it is to be removed.
    Directory(PathBuf),
    /// Nothing is to be done any more.
    Farewell,
}

/// The writing end.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts the second process.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(SUBCOMMAND).stdin(Stdio::piped()).stdout(Stdio::null());
        // A group of its own: what is sent to this command's group does not reach it.
        let mut child = command.process_group(0).spawn().context("cannot start the watchdog")?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Ends this process's group if this command cannot.
    pub(crate) fn group(&mut self, leader: &Identity) -> anyhow::Result<()> {
        self.say(&Word::Group(leader.clone()))
    }

    /// Forgets a group that has ended.
    pub(crate) fn gone(&mut self, leader: u32) -> anyhow::Result<()> {
        self.say(&Word::Gone(leader))
    }

    /// Ends the marked processes and removes the directory if this command cannot.
    pub(crate) fn directory(&mut self, directory: &Path) -> anyhow::Result<()> {
        self.say(&Word::Directory(directory.to_owned()))
    }

    fn say(&mut self, word: &Word) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(word)?;
        line.push(b'\n');
        let pipe = self.pipe.as_mut().context("the watchdog was sent away")?;
        pipe.write_all(&line).context("the watchdog has ended")
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.say(&Word::Farewell);
        self.pipe = None;
        let _ = self.child.wait();
    }
}

/// The watchdog itself.
pub(crate) fn run(input: impl std::io::Read) {
    let mut groups = BTreeMap::new();
    let mut directories = Vec::new();
    for line in std::io::BufReader::new(input).lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Word::Group(leader)) => drop(groups.insert(leader.pid, leader)),
            Ok(Word::Gone(leader)) => drop(groups.remove(&leader)),
            Ok(Word::Directory(directory)) => directories.push(directory),
            Ok(Word::Farewell) => return,
            Err(error) => eprintln!("xtask watchdog: {error} in {line}"),
        }
    }
    eprintln!("xtask watchdog: the command has ended without stopping its servers; stopping them");
    end(groups.values(), &directories);
}

/// Ends the groups and everything marked, waits for it, removes the directories.
pub(crate) fn end<'a>(leaders: impl Iterator<Item = &'a Identity> + Clone, directories: &[PathBuf]) -> bool {
    let ended = process::eventually(Duration::from_secs(10), || {
        leaders.clone().for_each(Identity::kill);
        directories.iter().for_each(|directory| process::sweep(directory));
        let marked = |directory: &PathBuf| !process::marked(directory).is_empty();
        !leaders.clone().any(Identity::is_alive) && !directories.iter().any(marked)
    });
    // What is only just ending may still make a file in a directory that is being removed.
    let stays = |directory: &&PathBuf| std::fs::remove_dir_all(directory).is_err() && directory.exists();
    process::eventually(Duration::from_secs(1), || directories.iter().filter(stays).count() == 0);
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[Word]) -> anyhow::Result<Vec<u8>> {
        let lines: Vec<String> = words.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        Ok(lines.join("\n").into_bytes())
    }

    #[test]
    fn what_was_not_stopped_is_stopped_and_removed() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?.keep();
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn()?;
        let leader = Identity::of(child.id()).context("it runs")?;
        let input = words(&[Word::Group(leader), Word::Directory(directory.clone())])?;
        run(&*input);
        assert!(!child.wait()?.success());
        assert!(!directory.exists());
        Ok(())
    }

    #[test]
    fn after_a_farewell_nothing_is_touched() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn()?;
        let leader = Identity::of(child.id()).context("it runs")?;
        let kept = Word::Directory(directory.path().to_owned());
        run(&*words(&[Word::Group(leader.clone()), kept, Word::Farewell])?);
        let alive = leader.is_alive();
        child.kill()?;
        child.wait()?;
        assert!(alive && directory.path().exists());
        Ok(())
    }
}
