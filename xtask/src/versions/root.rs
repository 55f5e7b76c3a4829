//! Another Debian release with its RabbitMQ, installed in a directory. It is made once, and nothing runs in it between the tests.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

use super::{Release, version_below};
use crate::install::{self, Program};
use crate::{process, run, signals};

const DEBOOTSTRAP: Program =
    Program { name: "debootstrap", places: &[], avoid: &[], package: "debootstrap", variable: "MQGUARD_TEST_RABBITMQ" };

/// Starts no services; there is no system there to run them.
const POLICY: &str = "#!/bin/sh\nexit 101\n";

/// A node's name has the host `localhost`, which not every release knows by itself.
const HOSTS: &str = "127.0.0.1 localhost\n::1 localhost\n";

/// The root of a release in this directory, made if it is not there yet, and its version of RabbitMQ.
pub(super) fn obtain(release: &Release, directory: &Path, mark: &Path) -> anyhow::Result<(PathBuf, String)> {
    // Also to use one: the launchers mount in it.
    ensure!(rustix::process::geteuid().is_root(), "a root of another Debian release needs root");
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let lock = File::create(directory.join("lock"))?;
    lock.lock()?;
    let root = directory.join("root");
    if let Some(version) = version_below(&root) {
        return Ok((root, version));
    }
    install::ensure(&[&DEBOOTSTRAP])?;
    let mirror = mirror().context("the machine's apt names no mirror of Debian")?;
    // Only what is complete has the name under which it is looked for.
    let partial = directory.join("partial");
    remove(&partial)?;
    let begun = Instant::now();
    let log = directory.join("root.log");
    let (version, suite) = (release.version, release.suite);
    eprintln!("xtask: making a root of Debian {suite} for RabbitMQ {version}, which takes a minute; log in {}", log.display());
    let made = Making { root: &partial, log: &File::create(&log)?, mark }.make(release, &mirror);
    let version = match made {
        Ok(version) => version,
        Err(error) => {
            signals::check()?;
            drop(remove(&partial));
            return Err(error.context(last_line(&log)));
        }
    };
    fs::rename(&partial, &root)?;
    eprintln!("xtask: RabbitMQ {version} is in {} ({:.0} s)", root.display(), begun.elapsed().as_secs_f32());
    Ok((root, version))
}

fn remove(root: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(root) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).with_context(|| root.display().to_string()),
        _ => Ok(()),
    }
}

struct Making<'a> {
    root: &'a Path,
    log: &'a File,
    mark: &'a Path,
}

impl Making<'_> {
    /// Makes it; the version of RabbitMQ in it.
    fn make(&self, release: &Release, mirror: &str) -> anyhow::Result<String> {
        self.run(
            self.command("debootstrap")
                .args(["--variant=minbase", "--force-check-gpg", release.suite])
                .arg(self.root)
                .arg(mirror),
        )?;
        self.write("usr/sbin/policy-rc.d", POLICY, 0o755)?;
        // What a power failure interrupts is made anew anyway.
        self.write("etc/dpkg/dpkg.cfg.d/unsafe-io", "force-unsafe-io\n", 0o644)?;
        self.write("etc/hosts", HOSTS, 0o644)?;
        // Where packages come from is as the machine's owner has set it, a proxy for example.
        let settings = Command::new("apt-config").args(["dump", "Acquire"]).output().context("cannot run apt-config")?;
        self.write("etc/apt/apt.conf.d/99machine", &String::from_utf8_lossy(&settings.stdout), 0o644)?;
        self.run(self.inside("apt-get").args(["-q", "update"]))?;
        let policy = self.inside("apt-cache").args(["policy", "rabbitmq-server"]).output()?;
        let policy = String::from_utf8_lossy(&policy.stdout).into_owned();
        let candidate = candidate(&policy).with_context(|| format!("Debian {} has no RabbitMQ", release.suite))?;
        ensure!(release.has(candidate), "Debian {} has RabbitMQ {candidate} now", release.suite);
        self.run(self.inside("apt-get").args(["-q", "install", "-y", "--no-install-recommends", "rabbitmq-server"]))?;
        self.run(self.inside("apt-get").arg("clean"))?;
        version_below(self.root).context("RabbitMQ is not there even after the installation")
    }

    /// A command in a mount namespace of its own: what debootstrap mounts in the root is gone when it has ended, in whatever way.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", program]).env(process::MARK, self.mark);
        command
    }

    fn inside(&self, program: &str) -> Command {
        let mut command = self.command("chroot");
        command.arg(self.root).arg(program).envs([("DEBIAN_FRONTEND", "noninteractive"), ("LC_ALL", "C.UTF-8")]);
        command
    }

    fn run(&self, command: &mut Command) -> anyhow::Result<()> {
        let status = run::announced(command.stdout(self.log.try_clone()?).stderr(self.log.try_clone()?))?;
        if !status.success() {
            bail!("{} failed: {status}", run::shown(command));
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> anyhow::Result<()> {
        let file = self.root.join(name);
        fs::write(&file, text).with_context(|| file.display().to_string())?;
        fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
        Ok(())
    }
}

/// The version that `apt-cache policy` would install, without an epoch: `4.3.6-1`.
fn candidate(policy: &str) -> Option<&str> {
    let line = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "))?;
    let version = line.split_once(':').map_or(line, |(_, version)| version);
    (version != "(none)").then_some(version)
}

/// The mirror that the machine's own packages come from.
fn mirror() -> Option<String> {
    let directory = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = directory.map(|entry| entry.path()).collect();
    files.sort();
    files.insert(0, "/etc/apt/sources.list".into());
    let is_sources = |file: &&PathBuf| file.extension().is_some_and(|extension| extension == "list" || extension == "sources");
    files.iter().filter(is_sources).find_map(|file| mirror_in(&fs::read_to_string(file).ok()?))
}

/// The first one of Debian itself in a list of sources, of the old form or the new.
fn mirror_in(sources: &str) -> Option<String> {
    let lines = sources.lines().map(str::trim).filter(|line| line.starts_with("URIs:") || line.starts_with("deb "));
    let mut words = lines.flat_map(str::split_ascii_whitespace);
    words.find(|word| word.contains("://") && word.trim_end_matches('/').ends_with("/debian")).map(str::to_owned)
}

/// The last words of a log.
fn last_line(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_that_of_the_machine() {
        let new = "Types: deb\n# http://old/debian\nURIs: http://mirror/debian\nSuites: bookworm\n";
        let old = "# deb http://old/debian sid main\ndeb [arch=amd64] http://mirror/debian bookworm main\n";
        for sources in [new, old] {
            assert_eq!(mirror_in(sources).as_deref(), Some("http://mirror/debian"));
        }
        assert_eq!(mirror_in("Types: deb\nURIs: http://mirror/debian-security\n"), None);
    }

    #[test]
    fn the_candidate_is_found_without_its_epoch() {
        assert_eq!(candidate("rabbitmq-server:\n  Installed: (none)\n  Candidate: 4.3.6-1\n"), Some("4.3.6-1"));
        assert_eq!(candidate("  Candidate: 1:27.3\n"), Some("27.3"));
        assert_eq!(candidate("  Candidate: (none)\n"), None);
        assert_eq!(candidate(""), None);
    }
}
