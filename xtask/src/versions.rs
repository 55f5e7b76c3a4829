//! The versions of RabbitMQ that the tests run on: the machine's own, and those of other Debian releases, each in a root of its own.

mod launchers;
mod root;

use std::path::{Path, PathBuf};

/// A Debian release and the version of RabbitMQ that it has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// The first two numbers of the version: what is pinned, since `sid` moves on.
    pub(crate) version: &'static str,
    /// The name that debootstrap knows it by.
    suite: &'static str,
}

/// From the oldest to the newest.
pub(crate) static RELEASES: [Release; 3] = [
    Release { version: "3.10", suite: "bookworm" },
    Release { version: "4.0", suite: "trixie" },
    Release { version: "4.3", suite: "sid" },
];

impl Release {
    /// Is this full version one of this release?
    pub(crate) fn has(&self, version: &str) -> bool {
        version.strip_prefix(self.version).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// What `--rabbitmq` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The machine's own alone.
    Installed,
    /// Every one that can be had.
    All,
    /// This one.
    One(&'static Release),
}

impl std::str::FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "installed" => Ok(Self::Installed),
            "all" => Ok(Self::All),
            _ => RELEASES.iter().find(|release| release.has(text)).map(Self::One).ok_or_else(|| {
                let known: Vec<&str> = RELEASES.iter().map(|release| release.version).collect();
                format!("it is `installed`, `all` or one of {}", known.join(", "))
            }),
        }
    }
}

/// A RabbitMQ that can be started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The full version, as `4.0.5`.
    pub(crate) name: String,
    /// The directory of programs that run it; the machine's own are elsewhere.
    pub(crate) programs: Option<PathBuf>,
}

/// The version that the machine has, if it is where Debian puts it.
pub(crate) fn installed() -> Option<String> {
    version_below(Path::new("/"))
}

/// The version whose files are below this root.
fn version_below(root: &Path) -> Option<String> {
    let entries = std::fs::read_dir(root.join("usr/lib/rabbitmq/lib")).ok()?.flatten();
    entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix("rabbitmq_server-")?.to_owned())).max()
}

/// The RabbitMQ of a release: the machine's own, or one in a root below the target directory, which is made if it is not there yet. What
/// makes it carries this mark, by which a watchdog can end it.
pub(crate) fn obtain(release: &'static Release, target_directory: &Path, mark: &Path) -> anyhow::Result<Version> {
    if let Some(name) = installed().filter(|name| release.has(name)) {
        return Ok(Version { name, programs: None });
    }
    let directory = target_directory.join("rabbitmq").join(release.version);
    let (root, name) = root::obtain(release, &directory, mark)?;
    let programs = launchers::write(&directory.join("bin"), &root, &name)?;
    Ok(Version { name, programs: Some(programs) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_chosen_by_its_first_numbers_or_all_of_them() {
        for (text, version) in [("3.10", "3.10"), ("3.10.8", "3.10"), ("4.0", "4.0"), ("4.3.6", "4.3")] {
            assert!(matches!(text.parse(), Ok(Choice::One(release)) if release.version == version), "{text}");
        }
        assert_eq!(("all".parse(), "installed".parse()), (Ok(Choice::All), Ok(Choice::Installed)));
        for text in ["", "4", "3.1", "4.30", "4.2", "newest"] {
            assert!(text.parse::<Choice>().is_err_and(|error| error.contains("3.10, 4.0, 4.3")), "{text}");
        }
    }

    #[test]
    fn the_version_is_in_the_name_of_a_directory() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        assert_eq!(version_below(root.path()), None);
        std::fs::create_dir_all(root.path().join("usr/lib/rabbitmq/lib/rabbitmq_server-4.0.5/ebin"))?;
        assert_eq!(version_below(root.path()), Some("4.0.5".to_owned()));
        Ok(())
    }
}
