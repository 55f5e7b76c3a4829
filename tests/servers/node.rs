//! Private RabbitMQ nodes, for tests that kill and restart them.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Vhost, until};

/// Tells nodes, and their tools, where the others are. Runs until it is dropped.
pub(crate) struct Epmd {
    port: u16,
    child: Child,
}

impl Epmd {
    pub(crate) fn start() -> Self {
        let port = free_port();
        let child = Command::new(program("epmd"))
            .args(["-address", "127.0.0.1", "-port", &port.to_string()])
            .env("MQGUARD_XTASK_SERVER_DIR", base())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("epmd, as of Debian's package erlang-base");
        let epmd = Self { port, child };
        until("epmd listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        epmd
    }
}

impl Drop for Epmd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs until it is dropped.
pub(crate) struct Node {
    port: u16,
    directory: PathBuf,
    environment: Vec<(&'static str, String)>,
    /// The script that waits for the node, whose own process is another.
    server: Option<Child>,
    _epmd: Arc<Epmd>,
}

const CONFIGURATION: &str = "disk_free_limit.absolute = 1MB\nvm_memory_high_watermark.relative = 0.6\nlog.file.level = warning\n";

/// What was dead-lettered and not confirmed, as when a node dies, is sent again after 5 s instead of 180.
const ADVANCED: &str = "[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 5000}]}].\n";

/// No waiting in loops, and no port for other machines.
const ERLANG_ARGUMENTS: &str = "+sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}";

impl Node {
    pub(crate) fn start() -> Self {
        Self::start_as("mqguard@localhost", "", &Arc::new(Epmd::start()))
    }

    /// Under this name and with more configuration. All know the same secret, so those that share an epmd can form a cluster.
    pub(crate) fn start_as(name: &str, configuration: &str, epmd: &Arc<Epmd>) -> Self {
        let [port, distribution] = [(); 2].map(|()| free_port());
        let directory = base().join(format!("mqguard-node-{}-{port}", std::process::id()));
        std::fs::create_dir(&directory).expect("a directory of its own");
        let environment = environment(&directory, name, configuration, [port, distribution, epmd.port]);
        let mut node = Self { port, directory, environment, server: None, _epmd: Arc::clone(epmd) };
        node.run();
        node
    }

    /// Starts it, again after [`kill`](Self::kill), and waits until it takes connections.
    pub(crate) fn run(&mut self) {
        let log = File::options().create(true).append(true).open(self.directory.join("console.log")).expect("a log");
        let mut command = Command::new(program("rabbitmq-server"));
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value))).current_dir(&self.directory);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        let server = self.server.insert(command.spawn().expect("rabbitmq-server starts"));
        let end = Instant::now() + Duration::from_secs(60);
        while !answers(self.port) {
            let ended = server.try_wait().expect("its state is known");
            if ended.is_some() || Instant::now() > end {
                let log = std::fs::read_to_string(self.directory.join("console.log")).unwrap_or_default();
                panic!("the node does not start ({ended:?}): {log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let pid = std::fs::read_to_string(self.directory.join("pid")).unwrap_or_default();
        // Without a pid it is not yet up: the script passes a SIGTERM on.
        let signal = if pid.trim().is_empty() {
            ["TERM", &server.id().to_string()].map(str::to_owned)
        } else {
            ["KILL", pid.trim()].map(str::to_owned)
        };
        Command::new("kill").arg("-s").args(signal).stderr(Stdio::null()).status().expect("the command kill");
        let end = Instant::now() + Duration::from_secs(10);
        while matches!(server.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        server.kill().ok();
        server.wait().ok();
        std::fs::remove_file(self.directory.join("pid")).ok();
    }

    /// Sends it a signal: `STOP` freezes it, `CONT` lets it go on.
    pub(crate) fn signal(&self, name: &str) {
        let pid = std::fs::read_to_string(self.directory.join("pid")).expect("it is up");
        let sent = Command::new("kill").args(["-s", name, pid.trim()]).status().expect("the command kill");
        assert!(sent.success());
    }

    /// Whether it takes connections.
    pub(crate) fn accepts(&self) -> bool {
        answers(self.port)
    }

    /// Its virtual host `/`.
    pub(crate) fn vhost(&self) -> Vhost {
        Vhost::of_server(self.directory.join("rabbitmqctl"), self.port)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
        std::fs::remove_dir_all(&self.directory).ok();
    }
}

/// Where nodes have their directories. There, they are removed, and what runs in them ended, even when this process is killed.
pub(crate) fn base() -> PathBuf {
    std::env::var_os("MQGUARD_TEST_SERVERS_DIR").map_or_else(std::env::temp_dir, PathBuf::from)
}

/// The whole environment of the node and of its `rabbitmqctl`, which is written beside it.
fn environment(
    directory: &Path,
    name: &str,
    configuration: &str,
    [port, distribution, epmd]: [u16; 3],
) -> Vec<(&'static str, String)> {
    let path = |name: &str| directory.join(name).display().to_string();
    let file = |name: &str, text: &str| {
        std::fs::write(directory.join(name), text).expect("a file");
        path(name)
    };
    std::fs::create_dir(directory.join("home")).expect("a directory");
    // Else each would make up a secret of its own.
    let secret = file("home/.erlang.cookie", "mqguard-test");
    std::fs::set_permissions(secret, std::fs::Permissions::from_mode(0o400)).expect("it is ours");
    let environment = vec![
        ("PATH", std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into())),
        ("LANG", "C.UTF-8".into()),
        ("HOME", path("home")),
        // All of it, since certificates are beside the node's own directory: another version of RabbitMQ sees nothing else of this machine.
        ("MQGUARD_XTASK_SERVER_DIR", base().display().to_string()),
        ("ERL_EPMD_ADDRESS", "127.0.0.1".into()),
        ("ERL_EPMD_PORT", epmd.to_string()),
        ("RABBITMQ_NODENAME", name.into()),
        ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1".into()),
        ("RABBITMQ_NODE_PORT", port.to_string()),
        ("RABBITMQ_DIST_PORT", distribution.to_string()),
        ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", ERLANG_ARGUMENTS.into()),
        ("RABBITMQ_CTL_ERL_ARGS", ERLANG_ARGUMENTS.into()),
        ("RABBITMQ_MNESIA_BASE", path("mnesia")),
        ("RABBITMQ_LOG_BASE", path("log")),
        ("RABBITMQ_PID_FILE", path("pid")),
        ("RABBITMQ_CONFIG_FILE", file("rabbitmq.conf", &format!("{CONFIGURATION}{configuration}"))),
        ("RABBITMQ_ADVANCED_CONFIG_FILE", file("advanced.config", ADVANCED)),
        ("RABBITMQ_CONF_ENV_FILE", file("rabbitmq-env.conf", "")),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", file("enabled_plugins", "[].\n")),
    ];
    let mut script = "#!/bin/sh\nexec env -i".to_owned();
    for (name, value) in &environment {
        write!(script, " '{name}={value}'").expect("text");
    }
    writeln!(script, " '{}' \"$@\"", program("rabbitmqctl").display()).expect("text");
    let ctl = file("rabbitmqctl", &script);
    std::fs::set_permissions(ctl, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    environment
}

/// A program of RabbitMQ, of the version that is tested. Debian's wrapper in `/usr/sbin` becomes another user and drops the environment.
fn program(name: &str) -> PathBuf {
    let of_version = std::env::var_os("MQGUARD_TEST_RABBITMQ_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = of_version.into_iter().chain(["/usr/lib/rabbitmq/bin".into()]).chain(std::env::split_paths(&path));
    let mut files =
        places.filter(|place| place != Path::new("/usr/sbin") && place != Path::new("/sbin")).map(|place| place.join(name));
    files.find(|file| file.exists()).unwrap_or_else(|| panic!("{name}, as of Debian's package rabbitmq-server"))
}

/// Whether there is a broker that takes connections.
fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else { return false };
    let mut first = [0];
    stream.set_read_timeout(Some(Duration::from_secs(5))).is_ok()
        && stream.write_all(b"AMQP\x00\x00\x09\x01").is_ok()
        && stream.read_exact(&mut first).is_ok()
        && first == [1]
}

/// A port that nobody listens on, and that the system does not give to an outgoing connection.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Several runs at once begin at different places.
    let start = u16::try_from(std::process::id() % 10_000).expect("less than 10,000");
    let port = || 12_000 + (start + 7 * NEXT.fetch_add(1, Ordering::Relaxed)) % 13_000;
    std::iter::repeat_with(port).find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()).expect("a free port")
}
