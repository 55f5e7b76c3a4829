//! What `cargo metadata` says about this workspace.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// The workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// Where cargo builds.
    pub(crate) target_directory: PathBuf,
    /// The members.
    pub(crate) packages: Vec<Package>,
}

/// A member of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    features: std::collections::BTreeMap<String, Vec<String>>,
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
    /// Every set of its features, from none to all, `default` aside.
    pub(crate) fn feature_sets(&self) -> Vec<Vec<&str>> {
        let mut sets = vec![Vec::new()];
        for feature in self.features.keys().filter(|name| *name != "default") {
            for place in 0..sets.len() {
                let mut with = sets[place].clone();
                with.push(feature.as_str());
                sets.push(with);
            }
        }
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

    #[test]
    fn every_set_of_features_is_there_once() -> Result<(), serde_json::Error> {
        let package: Package =
            serde_json::from_str(r#"{"name": "p", "features": {"default": ["a"], "a": [], "b": [], "c": ["b"]}}"#)?;
        let sets: Vec<String> = package.feature_sets().iter().map(|s| s.concat()).collect();
        assert_eq!(sets, ["", "a", "b", "ab", "c", "ac", "bc", "abc"]);
        Ok(())
    }
}
