//! `cargo xtask services`: private servers that stay, for development.

mod state;

use std::path::Path;

use crate::process;
use crate::servers::{self, Guarded, Kind, Server};
use crate::watchdog;
use crate::workspace::Workspace;
use state::State;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Start those that do not run yet; print the variables that name them, for `eval`.
    Up,
    /// Say which run and where; exit code 1 if not all of them do.
    Status,
    /// Stop them all and remove what they kept.
    Down,
}

/// Runs the command; the exit code.
pub(crate) fn run(command: &Command) -> anyhow::Result<u8> {
    let directory = Workspace::load()?.target_directory.join("services");
    // Held until the end: two commands at once would start everything twice.
    let _lock = state::lock(&directory)?;
    let state = State::load(&directory)?;
    match command {
        Command::Up => up(&directory, state),
        Command::Status => Ok(status(&state)),
        Command::Down => down(&directory, &state),
    }
}

/// How a server is found.
#[derive(Debug)]
enum Condition<'a> {
    /// All of it runs, and it answers.
    Running(&'a Server),
    /// There is a record of it, but not all of it runs any more.
    Stale(&'a Server),
    /// There is no record of it.
    Absent,
}

fn condition<'a>(kind: &Kind, state: &'a State) -> Condition<'a> {
    match state.servers.iter().find(|server| server.name == kind.name) {
        Some(server) if server.is_alive() && kind.answers(server) => Condition::Running(server),
        Some(server) => Condition::Stale(server),
        None => Condition::Absent,
    }
}

fn up(directory: &Path, state: State) -> anyhow::Result<u8> {
    let mut running = Vec::new();
    let mut needed = Vec::new();
    for kind in servers::ALL {
        match condition(kind, &state) {
            Condition::Running(server) => {
                eprintln!("xtask: {} runs already at {}", kind.name, server.url);
                running.push(server.clone());
            }
            Condition::Stale(server) => {
                eprintln!("xtask: {} has ended; cleaning up after it", kind.name);
                server.stop()?;
                needed.push(kind);
            }
            Condition::Absent => needed.push(kind),
        }
    }
    servers::install(&needed)?;
    let mut guarded = Guarded::new()?;
    for kind in needed {
        let server = guarded.start(kind, directory)?;
        eprintln!("xtask: {} runs at {}", server.name, server.url);
    }
    running.extend_from_slice(guarded.servers());
    let state = State { servers: running };
    state.save(directory)?;
    guarded.keep();
    print_exports(&state);
    Ok(0)
}

fn status(state: &State) -> u8 {
    let mut code = 0;
    for kind in servers::ALL {
        match condition(kind, state) {
            Condition::Running(server) => {
                let pids: Vec<String> = server.processes.iter().map(|process| process.pid.to_string()).collect();
                let (pids, place) = (pids.join(", "), server.directory.display());
                eprintln!("xtask: {}: runs at {} (pid {pids}; {place})", kind.name, server.url);
            }
            Condition::Stale(server) => {
                code = 1;
                eprintln!("xtask: {}: has ended, or does not answer at {}", kind.name, server.url);
            }
            Condition::Absent => {
                code = 1;
                eprintln!("xtask: {}: does not run", kind.name);
            }
        }
    }
    if code == 0 {
        print_exports(state);
    }
    code
}

fn down(directory: &Path, state: &State) -> anyhow::Result<u8> {
    for server in &state.servers {
        server.stop()?;
        eprintln!("xtask: {} is stopped", server.name);
    }
    // What no record tells of: somebody removed the target directory under running servers.
    let strays = process::marked(directory);
    if !strays.is_empty() {
        eprintln!("xtask: stopping what else was started there: {strays:?}");
    }
    watchdog::end(std::iter::empty(), &[directory.to_owned()]);
    if state.servers.is_empty() && strays.is_empty() {
        eprintln!("xtask: nothing runs");
    }
    Ok(0)
}

/// Standard output has only this, for `eval`.
fn print_exports(state: &State) {
    for kind in servers::ALL {
        for server in state.servers.iter().filter(|server| server.name == kind.name) {
            println!("export {}='{}'", kind.variable, server.url);
            for (_, name, value) in &server.variables {
                println!("export {name}='{}'", value.replace('\'', r"'\''"));
            }
        }
    }
}
