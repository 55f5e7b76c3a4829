//! A private Redis.

use std::io::{Read as _, Write as _};
use std::process::Command;

use anyhow::ensure;

use super::starting::Starting;
use super::{Kind, Started};
use crate::install::Program;
use crate::ports;

const TEST_VARIABLE: &str = "MQGUARD_TEST_REDIS";

const SERVER: Program =
    Program { name: "redis-server", places: &[], avoid: &[], package: "redis-server", variable: TEST_VARIABLE };

/// Redis: keeps nothing on disk, forgets nothing for want of memory.
pub(super) const KIND: Kind =
    Kind { name: "redis", test_variable: TEST_VARIABLE, variable: "MQGUARD_REDIS", programs: &[&SERVER], start, probe };

fn start(starting: &mut Starting<'_>) -> anyhow::Result<Started> {
    let [port] = ports::pick()?;
    let mut command = Command::new(SERVER.require()?);
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--daemonize", "no"]);
    command.args(["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"]);
    command.arg("--dir").arg(starting.directory());
    starting.spawn("redis-server", &mut command)?;
    starting.wait(|| probe(port))?;
    Ok(Started { url: format!("redis://127.0.0.1:{port}"), port, variables: Vec::new() })
}

fn probe(port: u16) -> anyhow::Result<()> {
    let mut stream = super::starting::connect(port)?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer)?;
    ensure!(&answer == b"+PONG\r\n", "not a Redis that is ready");
    Ok(())
}
