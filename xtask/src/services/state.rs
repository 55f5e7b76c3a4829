//! The record of the servers that run, in a file beside them.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::servers::Server;

const FILE: &str = "state.json";

/// The record.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) servers: Vec<Server>,
}

impl State {
    /// The record in this directory; an empty one if there is none or it cannot be understood.
    pub(super) fn load(directory: &Path) -> anyhow::Result<Self> {
        let file = directory.join(FILE);
        let text = match fs::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            text => text.with_context(|| file.display().to_string())?,
        };
        Ok(serde_json::from_slice(&text).unwrap_or_else(|error| {
            eprintln!("xtask: {} cannot be understood ({error})", file.display());
            Self::default()
        }))
    }

    /// Writes the record, as a whole or not at all.
    pub(super) fn save(&self, directory: &Path) -> anyhow::Result<()> {
        let file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer_pretty(&file, self)?;
        file.persist(directory.join(FILE))?;
        Ok(())
    }
}

/// Waits for the other commands that work on this directory.
pub(super) fn lock(directory: &Path) -> anyhow::Result<File> {
    // Beside the directory, which comes and goes.
    let path = directory.with_extension("lock");
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    file.lock().with_context(|| path.display().to_string())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Identity;

    fn server() -> Server {
        Server {
            name: "redis".to_owned(),
            url: "redis://127.0.0.1:12345".to_owned(),
            port: 12_345,
            directory: "/nowhere/services/redis".into(),
            processes: vec![Identity { pid: 1 << 30, started: "1".to_owned() }],
            variables: vec![("A".to_owned(), "B".to_owned(), "c".to_owned())],
        }
    }

    #[test]
    fn what_is_saved_is_loaded() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        assert_eq!(State::load(directory.path())?, State::default());
        let state = State { servers: vec![server()] };
        state.save(directory.path())?;
        assert_eq!(State::load(directory.path())?, state);
        Ok(())
    }

    #[test]
    fn a_broken_record_counts_as_none() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        fs::write(directory.path().join(FILE), "{\"servers\": [{\"na")?;
        assert_eq!(State::load(directory.path())?, State::default());
        Ok(())
    }

    #[test]
    fn a_server_whose_process_is_gone_is_not_alive() {
        assert!(!server().is_alive());
    }
}
