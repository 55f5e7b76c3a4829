//! What `cargo metadata` says about this workspace.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// The workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// Where cargo builds.
    pub(crate) target_directory: PathBuf,
    /// Where the workspace is.
    pub(crate) workspace_root: PathBuf,
    /// The members.
    pub(crate) packages: Vec<Package>,
}

/// A member of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    features: BTreeMap<String, Vec<String>>,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load() -> anyhow::Result<Self> {
        let mut command = cargo();
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        let output = command.output().context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).context("cannot read cargo metadata")
    }
}

impl Package {
    /// Sets of its features, `default` aside: none, each alone, all but each, all. Every set would be
    /// twice as many with each feature; these find what one feature lacks alone, or lacks when missing.
    pub(crate) fn feature_sets(&self) -> Vec<Vec<&str>> {
        let all: Vec<&str> = self.features.keys().map(String::as_str).filter(|name| *name != "default").collect();
        let without = |one: &str| all.iter().copied().filter(|name| *name != one).collect();
        let mut sets = vec![Vec::new()];
        sets.extend(all.iter().map(|one| vec![*one]));
        sets.extend(all.iter().map(|one| without(one)));
        sets.push(all.clone());
        // Of two features or fewer, some of these are the same.
        let mut seen = HashSet::new();
        sets.retain(|set| seen.insert(set.clone()));
        sets
    }
}

/// The cargo that runs this command.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sets of a package with these features.
    fn sets(features: &str) -> Result<Vec<String>, serde_json::Error> {
        let package: Package = serde_json::from_str(&format!(r#"{{"name": "p", "features": {features}}}"#))?;
        Ok(package.feature_sets().iter().map(|set| set.concat()).collect())
    }

    #[test]
    fn each_feature_is_alone_once_and_missing_once() -> Result<(), serde_json::Error> {
        let four = sets(r#"{"default": ["a"], "a": [], "b": [], "c": ["b"], "d": []}"#)?;
        assert_eq!(four, ["", "a", "b", "c", "d", "bcd", "acd", "abd", "abc", "abcd"]);
        Ok(())
    }

    #[test]
    fn no_set_is_there_twice() -> Result<(), serde_json::Error> {
        assert_eq!(sets("{}")?, [""]);
        assert_eq!(sets(r#"{"default": [], "a": []}"#)?, ["", "a"]);
        assert_eq!(sets(r#"{"a": [], "b": []}"#)?, ["", "a", "b", "ab"]);
        Ok(())
    }
}
