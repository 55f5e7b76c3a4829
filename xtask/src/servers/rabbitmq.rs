//! A private RabbitMQ node.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::starting::{Starting, connect};
use super::{Kind, Started};
use crate::install::Program;
use crate::{ports, process};

const TEST_VARIABLE: &str = "MQGUARD_TEST_RABBITMQ";

const SERVER: Program = Program {
    name: "rabbitmq-server",
    places: &["/usr/lib/rabbitmq/bin"],
    // Debian's wrapper there becomes the user `rabbitmq` and drops the environment.
    avoid: &["/usr/sbin", "/sbin"],
    package: "rabbitmq-server",
    variable: TEST_VARIABLE,
};

const CTL: Program = Program { name: "rabbitmqctl", ..SERVER };

const EPMD: Program = Program { name: "epmd", places: &[], avoid: &[], package: "erlang-base", variable: TEST_VARIABLE };

/// RabbitMQ, as user `guest` with password `guest`.
pub(super) const KIND: Kind = Kind {
    name: "rabbitmq",
    test_variable: TEST_VARIABLE,
    variable: "MQGUARD_BROKER",
    programs: &[&SERVER, &CTL, &EPMD],
    start,
    probe,
};

/// A full disk or a small machine is no reason to block the publishers of a test.
const CONFIGURATION: &str = "\
disk_free_limit.absolute = 1MB
vm_memory_high_watermark.relative = 0.6
log.file.level = warning
";

/// No waiting in loops (the tests need the processor), and no port for other machines.
const ERLANG_ARGUMENTS: &str = "+sbwt none +sbwtdcpu none +sbwtdio none \
    -kernel inet_dist_use_interface {127,0,0,1}";

fn start(starting: &mut Starting<'_>) -> anyhow::Result<Started> {
    let [port, distribution, epmd] = ports::pick()?;
    let environment = environment(starting, port, distribution, epmd)?;
    // Our own epmd: RabbitMQ would start one as a daemon that stays when RabbitMQ stops.
    let mut command = Command::new(starting.program(&EPMD)?);
    command.args(["-address", "127.0.0.1", "-port", &epmd.to_string()]);
    starting.spawn("epmd", &mut command)?;
    starting.wait(|| probe_epmd(epmd))?;

    let mut command = Command::new(starting.program(&SERVER)?);
    command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    starting.spawn("rabbitmq-server", &mut command)?;
    starting.wait(|| probe(port))?;

    let ctl = write_ctl(starting, &environment)?;
    Ok(Started {
        url: format!("amqp://guest:guest@127.0.0.1:{port}/%2f"),
        port,
        variables: vec![(format!("{TEST_VARIABLE}_CTL"), "MQGUARD_RABBITMQ_CTL".to_owned(), ctl.display().to_string())],
    })
}

type Environment = Vec<(&'static str, OsString)>;

/// The whole environment of the node and of its tools: nothing of the system's own node is read.
fn environment(starting: &Starting<'_>, port: u16, distribution: u16, epmd: u16) -> anyhow::Result<Environment> {
    let text = |value: &str| OsString::from(value);
    let number = |value: u16| OsString::from(value.to_string());
    Ok(vec![
        ("PATH", std::env::var_os("PATH").unwrap_or_else(|| text("/usr/bin:/bin"))),
        ("LANG", text("C.UTF-8")),
        // Where Erlang keeps the secret that the tools share with the node.
        ("HOME", starting.create_dir("home")?.into()),
        (process::MARK, starting.directory().into()),
        ("ERL_EPMD_ADDRESS", text("127.0.0.1")),
        ("ERL_EPMD_PORT", number(epmd)),
        ("RABBITMQ_NODENAME", text("mqguard@localhost")),
        ("RABBITMQ_NODE_IP_ADDRESS", text("127.0.0.1")),
        ("RABBITMQ_NODE_PORT", number(port)),
        ("RABBITMQ_DIST_PORT", number(distribution)),
        ("RABBITMQ_CTL_DIST_PORT_MIN", number(ports::RABBITMQCTL.0)),
        ("RABBITMQ_CTL_DIST_PORT_MAX", number(ports::RABBITMQCTL.1)),
        ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", text(ERLANG_ARGUMENTS)),
        ("RABBITMQ_CTL_ERL_ARGS", text(ERLANG_ARGUMENTS)),
        ("RABBITMQ_MNESIA_BASE", starting.create_dir("mnesia")?.into()),
        ("RABBITMQ_LOG_BASE", starting.create_dir("log")?.into()),
        ("RABBITMQ_PID_FILE", starting.directory().join("pid").into()),
        ("RABBITMQ_CONFIG_FILE", starting.write("rabbitmq.conf", CONFIGURATION)?.into()),
        ("RABBITMQ_ADVANCED_CONFIG_FILE", starting.write("advanced.config", "[].\n")?.into()),
        ("RABBITMQ_CONF_ENV_FILE", starting.write("rabbitmq-env.conf", "")?.into()),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", starting.write("enabled_plugins", "[].\n")?.into()),
    ])
}

/// Writes a `rabbitmqctl` for this node: a program that needs no environment and no shell to call.
fn write_ctl(starting: &Starting<'_>, environment: &Environment) -> anyhow::Result<PathBuf> {
    let script = ctl_script(&starting.program(&CTL)?, environment)?;
    let file = starting.write("rabbitmqctl", &script)?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))?;
    Ok(file)
}

fn ctl_script(ctl: &Path, environment: &Environment) -> anyhow::Result<String> {
    let mut script = "#!/bin/sh\n# rabbitmqctl for this node.\nexec env -i".to_owned();
    for (name, value) in environment {
        let value = value.to_str().context("a path is not UTF-8")?.replace('\'', r"'\''");
        write!(script, " \\\n  '{name}={value}'")?;
    }
    writeln!(script, " \\\n  '{}' \"$@\"", ctl.display())?;
    Ok(script)
}

/// Asks epmd for the nodes it knows; it answers with its own port first.
fn probe_epmd(port: u16) -> anyhow::Result<()> {
    let mut stream = connect(port)?;
    stream.write_all(&[0, 1, b'n'])?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    ensure!(answer == u32::from(port).to_be_bytes(), "not an epmd that is ready");
    Ok(())
}

/// Logs in: a node that lets `guest` in has its users, and it opens its port last of all.
fn probe(port: u16) -> anyhow::Result<()> {
    let mut stream = connect(port)?;
    stream.write_all(b"AMQP\x00\x00\x09\x01")?;
    ensure!(read_method(&mut stream)? == (10, 10), "not an AMQP 0-9-1 server that is ready");
    stream.write_all(&start_ok())?;
    ensure!(read_method(&mut stream)? == (10, 30), "the server does not let guest in");
    Ok(())
}

/// Reads a frame; its class and method.
fn read_method(stream: &mut TcpStream) -> anyhow::Result<(u16, u16)> {
    let mut header = [0; 7];
    stream.read_exact(&mut header)?;
    ensure!(header[0] == 1, "not a method frame");
    let size = u32::from_be_bytes([header[3], header[4], header[5], header[6]]);
    ensure!((4..1 << 20).contains(&size), "not a frame");
    let mut payload = vec![0; usize::try_from(size)? + 1];
    stream.read_exact(&mut payload)?;
    Ok((u16::from_be_bytes([payload[0], payload[1]]), u16::from_be_bytes([payload[2], payload[3]])))
}

/// The frame connection.start-ok.
fn start_ok() -> Vec<u8> {
    let mut payload = vec![0, 10, 0, 11];
    payload.extend([0; 4]); // no client properties
    payload.extend(b"\x05PLAIN");
    payload.extend(b"\x00\x00\x00\x0c\x00guest\x00guest");
    payload.extend(b"\x05en_US");
    let size = u32::try_from(payload.len()).unwrap_or_default();
    [&[1, 0, 0], &size.to_be_bytes()[..], &payload, &[0xce]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_carries_the_whole_environment() -> anyhow::Result<()> {
        let environment = vec![("HOME", OsString::from("/tmp/it's here")), ("N", "1".into())];
        let script = ctl_script(Path::new("/lib/rabbitmqctl"), &environment)?;
        assert_eq!(
            script,
            "#!/bin/sh\n# rabbitmqctl for this node.\nexec env -i \\\n  \
             'HOME=/tmp/it'\\''s here' \\\n  'N=1' \\\n  '/lib/rabbitmqctl' \"$@\"\n"
        );
        Ok(())
    }

    #[test]
    fn the_login_frame_is_as_long_as_it_says() {
        let frame = start_ok();
        let size = u32::from_be_bytes([frame[3], frame[4], frame[5], frame[6]]);
        assert_eq!(usize::try_from(size).ok(), Some(frame.len() - 8));
    }
}
