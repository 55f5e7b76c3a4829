//! Programs that run those of a root as if they were the machine's own: with its files, and the server's directory where it is outside.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::process;

/// The programs of RabbitMQ that servers and tests call, and where they are in a root. Not those in `/usr/sbin`, which become the user
/// `rabbitmq` and drop the environment.
const PROGRAMS: [(&str, &str); 3] = [
    ("rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server"),
    ("rabbitmqctl", "/usr/lib/rabbitmq/bin/rabbitmqctl"),
    ("epmd", "/usr/bin/epmd"),
];

/// Writes them; the directory that they are in.
pub(super) fn write(directory: &Path, root: &Path, version: &str) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    for (name, program) in PROGRAMS {
        // Whole at once: another run may be starting it.
        let file = tempfile::NamedTempFile::new_in(directory)?;
        fs::write(file.path(), script(program, root, version)?)?;
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o755))?;
        file.persist(directory.join(name))?;
    }
    Ok(directory.to_owned())
}

/// In a mount namespace of its own: the mounts are gone with the last process that sees them, even if it is killed, so that nothing is
/// ever mounted in the root for those who remove it.
fn script(program: &str, root: &Path, version: &str) -> anyhow::Result<String> {
    let root = root.to_str().context("a path is not UTF-8")?;
    ensure!(!root.contains('\''), "{root} has a quote in it");
    let mark = process::MARK;
    Ok(format!(
        r#"#!/bin/sh
# RabbitMQ {version}. {mark} names the directory that it shares with the machine.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec unshare --mount --propagation private sh -ec '
    root=$1 program=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/tmp"
    mkdir -p "$root${mark}"
    mount --bind "${mark}" "$root${mark}"
    exec chroot "$root" "$program" "$@"
' sh '{root}' '{program}' "$@"
"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_run_in_its_root() -> anyhow::Result<()> {
        let text = script("/usr/bin/epmd", Path::new("/some where/root"), "4.0.5")?;
        assert!(text.contains("mount --bind \"$MQGUARD_XTASK_SERVER_DIR\" \"$root$MQGUARD_XTASK_SERVER_DIR\"\n"), "{text}");
        assert!(text.ends_with("' sh '/some where/root' '/usr/bin/epmd' \"$@\"\n"), "{text}");
        assert!(script("/usr/bin/epmd", Path::new("/it's"), "4.0.5").is_err());
        Ok(())
    }

    #[test]
    fn they_can_be_executed() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let programs = write(&directory.path().join("bin"), Path::new("/root"), "4.0.5")?;
        let mode = fs::metadata(programs.join("rabbitmqctl"))?.permissions().mode();
        assert_eq!((mode & 0o111, fs::read_dir(programs)?.count()), (0o111, PROGRAMS.len()));
        Ok(())
    }
}
