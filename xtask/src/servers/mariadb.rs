//! A private MariaDB.

use std::io::Read as _;
use std::process::Command;

use anyhow::ensure;

use super::starting::{Starting, connect};
use super::{Kind, Started};
use crate::install::Program;
use crate::ports;

const TEST_VARIABLE: &str = "MQGUARD_TEST_MARIADB";

const SERVER: Program = Program { name: "mariadbd", places: &[], avoid: &[], package: "mariadb-server", variable: TEST_VARIABLE };

const INSTALL_DB: Program = Program { name: "mariadb-install-db", ..SERVER };

/// MariaDB, as user `mqguard` with password `mqguard`, who may do everything.
pub(super) const KIND: Kind = Kind {
    name: "mariadb",
    test_variable: TEST_VARIABLE,
    variable: "MQGUARD_MYSQL",
    programs: &[&SERVER, &INSTALL_DB],
    start,
    probe,
};

/// Run before the server takes connections. It knows 127.0.0.1 by the name `localhost`.
const USERS: &str = "\
CREATE DATABASE mqguard;
CREATE USER mqguard@localhost IDENTIFIED BY 'mqguard';
GRANT ALL PRIVILEGES ON *.* TO mqguard@localhost WITH GRANT OPTION;
";

fn start(starting: &mut Starting<'_>) -> anyhow::Result<Started> {
    let [port] = ports::pick()?;
    let users = starting.write("users.sql", USERS)?;
    let temporary = starting.create_dir("tmp")?;
    let directories =
        [format!("--datadir={}", starting.directory().join("data").display()), format!("--tmpdir={}", temporary.display())];
    let options = |command: &mut Command| {
        // What the system's own server is configured to do is not for this one; it must come first.
        command.arg("--no-defaults").args(&directories);
        if rustix::process::geteuid().is_root() {
            command.arg("--user=root");
        }
    };
    let mut command = Command::new(INSTALL_DB.require()?);
    options(&mut command);
    command.args(["--skip-test-db", "--skip-name-resolve"]);
    starting.run("mariadb-install-db", &mut command)?;

    let mut command = Command::new(SERVER.require()?);
    options(&mut command);
    command.args(["--bind-address=127.0.0.1", "--port", &port.to_string()]);
    // Below the data directory, where the server is: the whole path may be longer than a socket's can be.
    command.arg("--socket=socket").arg("--init-file").arg(users);
    // A transaction survives the death of the server, if not that of the machine.
    command.args(["--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M", "--max-connections=300"]);
    starting.spawn("mariadbd", &mut command)?;
    starting.wait(|| probe(port))?;
    Ok(Started { url: format!("mysql://mqguard:mqguard@127.0.0.1:{port}/mqguard"), port, variables: Vec::new() })
}

/// Reads the greeting, which a server sends when it has its users; protocol 10 begins with a 10.
fn probe(port: u16) -> anyhow::Result<()> {
    let mut stream = connect(port)?;
    let mut greeting = [0; 5];
    stream.read_exact(&mut greeting)?;
    ensure!(greeting[4] == 10, "not a MariaDB that is ready");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::starting::fake;
    use super::*;

    #[test]
    fn a_server_that_lets_nobody_in_is_not_ready() -> anyhow::Result<()> {
        assert!(probe(fake(b"\x59\x00\x00\x00\x0a10.11.19-MariaDB\x00")?).is_ok());
        assert!(probe(fake(b"\x17\x00\x00\x00\xff\x10\x04Too many connections")?).is_err());
        assert!(probe(fake(b"")?).is_err());
        Ok(())
    }
}
