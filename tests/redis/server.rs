//! A private Redis server, and a plain client that looks into it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mqguard::idempotency::Owner;

/// Runs until it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) directory: PathBuf,
    process: Option<Child>,
    options: Vec<String>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// With these options on its command line.
    pub(crate) fn with(options: &[&str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let directory = std::env::temp_dir().join(format!("mqguard-redis-{}", Owner::random()));
        std::fs::create_dir(&directory).expect("a directory of its own");
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let mut server = Self { port, directory, process: None, options };
        server.run();
        server
    }

    /// Starts it, again after [`stop`](Self::stop).
    pub(crate) fn run(&mut self) {
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &self.port.to_string()])
            .args(&self.options)
            .current_dir(&self.directory)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server, as of Debian's package redis-server");
        self.process = Some(process);
        let end = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < end, "redis-server does not listen");
            std::thread::yield_now();
        }
        // It listens to one address after the other; once it answers, to all of them.
        self.client().ask("PING");
    }

    /// Kills it.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().and_then(|()| process.wait()).expect("redis-server ends");
        }
    }

    /// Sends it a signal.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let process = self.process.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args(["-s", name, &process]).status().expect("the command kill");
        assert!(sent.success());
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&format!("127.0.0.1:{}", self.port))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        std::fs::remove_dir_all(&self.directory).ok();
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Text(String),
    Number(i64),
    Nil,
    List(Vec<Reply>),
    Error(String),
}

impl Reply {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            other => panic!("not a text but {other:?}"),
        }
    }

    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Number(number) => number,
            other => panic!("not a number but {other:?}"),
        }
    }

    pub(crate) fn list(self) -> Vec<String> {
        match self {
            Self::List(list) => list.into_iter().map(Self::text).collect(),
            other => panic!("not a list but {other:?}"),
        }
    }
}

pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    /// To the server at an address, which needs no password.
    pub(crate) fn connect(address: &str) -> Self {
        Self(BufReader::new(TcpStream::connect(address).expect("the server is there")))
    }

    /// Sends a command whose words have no spaces.
    pub(crate) fn ask(&mut self, command: &str) -> Reply {
        self.ask_words(&command.split(' ').collect::<Vec<_>>())
    }

    /// Sends a command of these words.
    pub(crate) fn ask_words(&mut self, words: &[&str]) -> Reply {
        let mut bytes = format!("*{}\r\n", words.len());
        for word in words {
            bytes += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.0.get_mut().write_all(bytes.as_bytes()).expect("the command is sent");
        self.reply()
    }

    /// As [`ask`](Self::ask), and it must not fail.
    pub(crate) fn run(&mut self, command: &str) -> Reply {
        match self.ask(command) {
            Reply::Error(error) => panic!("{command}: {error}"),
            reply => reply,
        }
    }

    /// A number in the answer to `INFO`.
    pub(crate) fn info(&mut self, section: &str, name: &str) -> u64 {
        let text = self.run(&format!("INFO {section}")).text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
    }

    fn reply(&mut self) -> Reply {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        let line = line.trim_end_matches("\r\n");
        let (kind, rest) = line.split_at(1);
        match kind {
            "+" => Reply::Text(rest.into()),
            "-" => Reply::Error(rest.into()),
            ":" => Reply::Number(rest.parse().expect("a number")),
            "$" if rest == "-1" => Reply::Nil,
            "$" => {
                let mut bytes = vec![0; rest.parse::<usize>().expect("a length") + 2];
                self.0.read_exact(&mut bytes).expect("the rest of the answer");
                bytes.truncate(bytes.len() - 2);
                Reply::Text(String::from_utf8_lossy(&bytes).into_owned())
            }
            "*" => Reply::List((0..rest.parse::<usize>().expect("a length")).map(|_| self.reply()).collect()),
            _ => panic!("not an answer: {line}"),
        }
    }
}
