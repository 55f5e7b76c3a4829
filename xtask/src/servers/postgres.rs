//! A private PostgreSQL.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::starting::{Starting, connect};
use super::{Kind, Started};
use crate::install::Program;
use crate::ports;

const TEST_VARIABLE: &str = "MQGUARD_TEST_POSTGRES";

const SERVER: Program = Program {
    name: "postgres",
    // Debian keeps those of several versions side by side, in no directory of PATH.
    places: &["/usr/lib/postgresql/*/bin"],
    avoid: &[],
    package: "postgresql",
    variable: TEST_VARIABLE,
};

const INITDB: Program = Program { name: "initdb", ..SERVER };

/// PostgreSQL, as superuser `mqguard` with password `mqguard`.
pub(super) const KIND: Kind = Kind {
    name: "postgres",
    test_variable: TEST_VARIABLE,
    variable: "MQGUARD_POSTGRES",
    programs: &[&SERVER, &INITDB],
    start,
    probe,
};

/// TCP is the only way in. What is on disk ends with the server, shared memory too.
const SETTINGS: [&str; 5] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "dynamic_shared_memory_type=mmap",
    "max_connections=300",
];

fn start(starting: &mut Starting<'_>) -> anyhow::Result<Started> {
    let [port] = ports::pick()?;
    let data = starting.directory().join("data");
    let password = starting.write("password", "mqguard\n")?;
    let mut command = unprivileged(&INITDB.require()?);
    command.args(["--username=mqguard", "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync"]);
    command.arg("--pgdata").arg(&data).arg("--pwfile").arg(password);
    starting.run("initdb", &mut command)?;

    let mut command = unprivileged(&SERVER.require()?);
    command.arg("-D").arg(&data).args(["-p", &port.to_string()]);
    command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
    starting.spawn("postgres", &mut command)?;
    starting.wait(|| probe(port))?;
    release_memory(&data)?;
    Ok(Started { url: format!("postgres://mqguard:mqguard@127.0.0.1:{port}/postgres"), port, variables: Vec::new() })
}

/// The program, for root as the user that the package made: PostgreSQL refuses to run as root. It may
/// still go where root may, since the server's directory can be in one that only root can enter.
fn unprivileged(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    // It executes the program in its own place: the process that is watched is the server.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.args(["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--"]).arg(program);
    command
}

/// Gives the System V segment away, which a killed server would leave behind for ever: the kernel frees
/// it with the last process that has it.
fn release_memory(data: &Path) -> anyhow::Result<()> {
    let file = std::fs::read_to_string(data.join("postmaster.pid"))?;
    let segment = segment(&file).context("postmaster.pid names no shared memory")?;
    let status = Command::new("ipcrm").args(["-m", segment]).status().context("cannot run ipcrm")?;
    ensure!(status.success(), "ipcrm -m {segment} failed: {status}");
    Ok(())
}

/// The segment's number: the last one in the seventh line, after its key.
fn segment(postmaster_pid: &str) -> Option<&str> {
    postmaster_pid.lines().nth(6)?.split_ascii_whitespace().nth(1)
}

/// Begins to log in: a server that is ready asks for the password, any other sends an error.
fn probe(port: u16) -> anyhow::Result<()> {
    let mut stream = connect(port)?;
    stream.write_all(&startup())?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    ensure!(answer == *b"R", "not a PostgreSQL that is ready");
    Ok(())
}

/// The startup packet of protocol 3.0.
fn startup() -> Vec<u8> {
    let body = b"\x00\x03\x00\x00user\x00mqguard\x00database\x00postgres\x00\x00";
    let size = u32::try_from(body.len() + 4).unwrap_or_default();
    [&size.to_be_bytes()[..], body].concat()
}

#[cfg(test)]
mod tests {
    use super::super::starting::fake;
    use super::*;

    #[test]
    fn a_server_that_still_starts_is_not_ready() -> anyhow::Result<()> {
        assert!(probe(fake(b"R\x00\x00\x00\x17\x00\x00\x00\x0a")?).is_ok());
        assert!(probe(fake(b"E\x00\x00\x00\x42SFATAL\x00C57P03\x00")?).is_err());
        assert!(probe(fake(b"")?).is_err());
        Ok(())
    }

    #[test]
    fn the_startup_packet_is_as_long_as_it_says() {
        let packet = startup();
        let size = u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]);
        assert_eq!(usize::try_from(size).ok(), Some(packet.len()));
    }

    #[test]
    fn the_shared_memory_is_found() {
        assert_eq!(segment("1\n/data\n1796063464\n15999\n\n127.0.0.1\n 10092577         4\nready   \n"), Some("4"));
        assert_eq!(segment("1\n/data\n"), None);
    }
}
