//! Private servers. A new one is a file beside this one and a line in [`ALL`].

mod mariadb;
mod postgres;
mod rabbitmq;
mod redis;
mod starting;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::install::{self, Program};
use crate::process::Identity;
use crate::watchdog::{self, Watchdog};
use starting::Starting;

/// Every kind of server there is.
pub(crate) const ALL: [&Kind; 4] = [&rabbitmq::KIND, &redis::KIND, &mariadb::KIND, &postgres::KIND];

/// The one of which there are several versions.
pub(crate) const RABBITMQ: &Kind = &rabbitmq::KIND;

/// Those that the benchmark uses; others would only disturb it.
pub(crate) const BENCHED: [&Kind; 2] = [&rabbitmq::KIND, &redis::KIND];

/// A kind of server.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Its name in messages and of its directory.
    pub(crate) name: &'static str,
    /// The variable that gives its URL to the tests, and in which a user may name an existing one.
    pub(crate) test_variable: &'static str,
    /// The variable that gives its URL to programs in development.
    pub(crate) variable: &'static str,
    /// What must be installed.
    programs: &'static [&'static Program],
    /// Starts one and waits until it answers.
    start: fn(&mut Starting<'_>) -> anyhow::Result<Started>,
    /// Is there a server of this kind that answers on the port?
    probe: fn(u16) -> anyhow::Result<()>,
}

impl Kind {
    /// Does the server answer?
    pub(crate) fn answers(&self, server: &Server) -> bool {
        (self.probe)(server.port).is_ok()
    }
}

/// What starting a server gives.
#[derive(Debug)]
struct Started {
    url: String,
    port: u16,
    /// Further variables: the name for tests, the name in development, the value.
    variables: Vec<(String, String, String)>,
}

/// A server that runs, whoever started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Server {
    /// The name of its kind.
    pub(crate) name: String,
    /// What clients connect to.
    pub(crate) url: String,
    /// Where it listens for them, on 127.0.0.1.
    pub(crate) port: u16,
    /// Everything it keeps.
    pub(crate) directory: PathBuf,
    /// The leaders of its process groups.
    pub(crate) processes: Vec<Identity>,
    /// Further variables: the name for tests, the name in development, the value.
    pub(crate) variables: Vec<(String, String, String)>,
}

impl Server {
    /// Do all of its processes still run?
    pub(crate) fn is_alive(&self) -> bool {
        self.processes.iter().all(Identity::is_alive)
    }

    /// Ends all of its processes and removes its directory.
    pub(crate) fn stop(&self) -> anyhow::Result<()> {
        let directories = std::slice::from_ref(&self.directory);
        watchdog::end(self.processes.iter(), directories)
            .then_some(())
            .with_context(|| format!("{} does not end: {:?}", self.name, self.processes))
    }
}

/// Installs what is missing for these kinds.
pub(crate) fn install(kinds: &[&Kind]) -> anyhow::Result<()> {
    let programs: Vec<&Program> = kinds.iter().flat_map(|k| k.programs).copied().collect();
    install::ensure(&programs)
}

/// Servers that end with this value, or by the watchdog with this process.
#[derive(Debug)]
pub(crate) struct Guarded {
    servers: Vec<Server>,
    /// Dropped after the servers were stopped.
    watchdog: Watchdog,
}

impl Guarded {
    /// No servers yet.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self { servers: Vec::new(), watchdog: Watchdog::start()? })
    }

    /// Starts a server that keeps its things in a directory of its own below `base`.
    pub(crate) fn start(&mut self, kind: &Kind, base: &Path) -> anyhow::Result<&Server> {
        self.start_with(kind, base, None)
    }

    /// As [`start`](Self::start), with the programs in this directory instead of the machine's own.
    pub(crate) fn start_with(&mut self, kind: &Kind, base: &Path, programs: Option<&Path>) -> anyhow::Result<&Server> {
        let directory = base.join(kind.name);
        let server = starting::start(kind, &directory, programs, &mut self.watchdog)
            .with_context(|| format!("cannot start {}", kind.name))?;
        let place = self.servers.len();
        self.servers.push(server);
        Ok(&self.servers[place])
    }

    /// The servers started so far.
    pub(crate) fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// For what else is to end with this process.
    pub(crate) fn watchdog(&mut self) -> &mut Watchdog {
        &mut self.watchdog
    }

    /// Lets the servers run on without this process.
    pub(crate) fn keep(mut self) -> Vec<Server> {
        std::mem::take(&mut self.servers)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        for server in &self.servers {
            if let Err(error) = server.stop() {
                eprintln!("xtask: {error:#}");
            }
        }
    }
}
