//! Finding programs, and installing the missing ones with the system's package manager.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::run;

/// Debian starts a freshly installed server unless this file forbids it.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_TEXT: &str = "#!/bin/sh\n# Written by `cargo xtask` while it installs packages: start no services.\nexit 101\n";

/// A program of a server, and where it comes from.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its file name.
    pub(crate) name: &'static str,
    /// Directories to look into before those of `PATH`; a `*` stands for any version, the newest first.
    pub(crate) places: &'static [&'static str],
    /// Directories of `PATH` whose program of this name is not the right one.
    pub(crate) avoid: &'static [&'static str],
    /// The Debian package that has it.
    pub(crate) package: &'static str,
    /// The variable that names an existing server to use instead.
    pub(crate) variable: &'static str,
}

impl Program {
    /// Where the program is on this machine.
    pub(crate) fn find(&self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = self.places.iter().flat_map(|place| versions(place));
        places
            .chain(std::env::split_paths(&path))
            // Servers are often in directories that are not in an ordinary user's PATH.
            .chain(["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"].map(PathBuf::from))
            .filter(|directory| !self.avoid.iter().any(|avoid| directory == Path::new(avoid)))
            .map(|directory| directory.join(self.name))
            .find(|file| is_executable(file))
    }

    /// Where the program is, or an error that says what to do.
    pub(crate) fn require(&self) -> anyhow::Result<PathBuf> {
        self.find().with_context(|| explain(&[self], "it is not installed"))
    }
}

/// The directories that a place with a `*` for a version stands for, from the newest to the oldest.
fn versions(place: &str) -> Vec<PathBuf> {
    let Some((parent, below)) = place.split_once("/*/") else {
        return vec![place.into()];
    };
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut versions: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable();
    versions.iter().rev().map(|version| Path::new(parent).join(version.to_string()).join(below)).collect()
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Installs those of the programs that are missing.
pub(crate) fn ensure(programs: &[&Program]) -> anyhow::Result<()> {
    let missing: Vec<&Program> = programs.iter().copied().filter(|p| p.find().is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!(explain(&missing, "there is no apt-get here to install them with"));
    }
    let root = Root::find().with_context(|| explain(&missing, "installing them needs root or passwordless sudo"))?;
    let mut packages: Vec<&str> = missing.iter().map(|p| p.package).collect();
    packages.dedup();
    eprintln!("xtask: installing {}", packages.join(", "));
    install(root, &packages).with_context(|| explain(&missing, "apt-get could not install them"))?;
    let still: Vec<&Program> = missing.into_iter().filter(|p| p.find().is_none()).collect();
    if !still.is_empty() {
        bail!(explain(&still, "they are missing even after the installation"));
    }
    Ok(())
}

fn install(root: Root, packages: &[&str]) -> anyhow::Result<()> {
    let _policy = Policy::forbid(root)?;
    succeed(root.command("apt-get").args(["-q", "update"]))?;
    let mut command = root.command("env");
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "install", "-y"]);
    // Another installation may be under way on a fresh machine: wait for it.
    command.args(["--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"]);
    succeed(command.args(packages))
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    // Standard output belongs to the tests' results and to `eval`.
    let status = run::announced(command.stdout(std::io::stderr()))?;
    if !status.success() {
        bail!("{} failed: {status}", run::shown(command));
    }
    Ok(())
}

/// The message for a machine where the programs are not and cannot be installed.
fn explain(missing: &[&Program], why: &str) -> String {
    let mut text = format!("servers are missing and {why}.");
    for program in missing {
        let _ = write!(
            text,
            "\n  {}: install the package `{}` (as root: apt-get install {}), \
             or name an existing server in {}",
            program.name, program.package, program.package, program.variable
        );
    }
    text
}

/// How to become root.
#[derive(Debug, Clone, Copy)]
enum Root {
    Already,
    Sudo,
}

impl Root {
    fn find() -> Option<Self> {
        if rustix::process::geteuid().is_root() {
            return Some(Self::Already);
        }
        let sudo = Command::new("sudo").args(["-n", "true"]).output();
        sudo.is_ok_and(|output| output.status.success()).then_some(Self::Sudo)
    }

    fn command(self, program: &str) -> Command {
        match self {
            Self::Already => Command::new(program),
            Self::Sudo => {
                let mut command = Command::new("sudo");
                command.args(["-n", program]);
                command
            }
        }
    }
}

/// While it lives, installed packages start no services; a policy that was there stays as it is.
#[derive(Debug)]
struct Policy(Option<Root>);

impl Policy {
    fn forbid(root: Root) -> anyhow::Result<Self> {
        if Path::new(POLICY).exists() {
            return Ok(Self(None));
        }
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), POLICY_TEXT)?;
        let policy = Self(Some(root));
        succeed(root.command("install").args(["-m", "755"]).arg(file.path()).arg(POLICY))?;
        Ok(policy)
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if let Some(root) = self.0 {
            let mut command = root.command("rm");
            command.args(["-f", POLICY]);
            eprintln!("xtask: $ {}", run::shown(&command));
            // Not run::announced: it must also happen after a signal.
            let _ = command.status();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Program =
        Program { name: "no-such-server", places: &[], avoid: &[], package: "no-such-package", variable: "MQGUARD_TEST_NONE" };
    const SH: Program = Program { name: "sh", places: &["/bin"], avoid: &[], ..NONE };

    #[test]
    fn a_program_is_found_in_its_places_first() {
        assert_eq!(SH.find(), Some(PathBuf::from("/bin/sh")));
        assert_eq!(NONE.find(), None);
    }

    #[test]
    fn the_newest_version_comes_first() -> anyhow::Result<()> {
        let parent = tempfile::tempdir()?;
        for name in ["9", "15", "16", "common"] {
            std::fs::create_dir(parent.path().join(name))?;
        }
        let place = format!("{}/*/bin", parent.path().display());
        assert_eq!(versions(&place), ["16/bin", "15/bin", "9/bin"].map(|below| parent.path().join(below)));
        assert_eq!(versions("/no/such/*/bin"), <[PathBuf; 0]>::default());
        Ok(())
    }

    #[test]
    fn a_directory_to_avoid_is_avoided() {
        let avoiding = Program { places: &[], avoid: &["/bin", "/usr/bin"], ..SH };
        let found = avoiding.find();
        assert!(found.as_deref().is_none_or(|f| !f.starts_with("/bin") && !f.starts_with("/usr/bin/")), "{found:?}");
    }

    #[test]
    fn the_explanation_names_binary_package_and_variable() {
        let text = explain(&[&NONE], "why");
        for part in ["no-such-server", "apt-get install no-such-package", "MQGUARD_TEST_NONE"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
