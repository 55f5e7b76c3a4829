//! A private MariaDB, for what has to be set before it starts.

use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::authority::Certificate;
use crate::node::{base, free_port};
use crate::support::until;

/// Runs until it is dropped. Its user `mqguard` comes by TLS, or not at all.
pub(crate) struct MariaDb {
    pub(crate) port: u16,
    server: Child,
    _directory: TempDir,
}

impl MariaDb {
    pub(crate) fn start(password: &str, proof: &Certificate) -> Self {
        let directory = tempfile::Builder::new().prefix("mqguard-mariadb-").tempdir_in(base()).expect("a directory of its own");
        let users = directory.path().join("users.sql");
        let sql = format!(
            "CREATE DATABASE mqguard;\nCREATE USER mqguard@localhost IDENTIFIED BY '{password}' REQUIRE SSL;\n\
             GRANT ALL PRIVILEGES ON mqguard.* TO mqguard@localhost;\n"
        );
        std::fs::write(&users, sql).expect("a file");
        let made = command("mariadb-install-db", directory.path()).arg("--skip-test-db").arg("--skip-name-resolve").status();
        assert!(made.expect("mariadb-install-db, as of Debian's package mariadb-server").success());
        let port = free_port();
        let server = command("mariadbd", directory.path())
            .args(["--bind-address=127.0.0.1", "--port", &port.to_string(), "--socket=socket", "--innodb-buffer-pool-size=16M"])
            .arg("--init-file")
            .arg(users)
            .arg(option("--ssl-cert", &proof.certificate))
            .arg(option("--ssl-key", &proof.key))
            .spawn()
            .expect("mariadbd starts");
        let mariadb = Self { port, server, _directory: directory };
        until("MariaDB answers", || greets(port));
        mariadb
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

fn command(program: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    // What the system's own server is configured to do is not for this one; it must come first.
    command.arg("--no-defaults").arg(option("--datadir", &directory.join("data"))).arg(option("--tmpdir", directory));
    // The tests may run as root, as in a container.
    command.arg("--user").arg(user());
    command.env("MQGUARD_XTASK_SERVER_DIR", directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output().expect("the command id");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", PathBuf::from(path).display())
}

/// Whether it sends the greeting of protocol 10, which it does when it has its users.
fn greets(port: u16) -> bool {
    let mut greeting = [0; 5];
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok_and(|mut stream| stream.read_exact(&mut greeting).is_ok())
        && greeting[4] == 10
}
