//! The scripts, and the commands that run them.

use std::sync::LazyLock;

use redis::Cmd;

use super::super::contract::Owner;
use super::entry::{Entry, PREFIX};

/// A script, and the name by which the server remembers it.
#[derive(Debug)]
pub(super) struct Lua {
    source: &'static str,
    hash: LazyLock<String>,
}

macro_rules! lua {
    ($($source:expr),+) => {{
        const SOURCE: &str = concat!($($source),+);
        Lua { source: SOURCE, hash: LazyLock::new(|| redis::Script::new(SOURCE).get_hash().to_owned()) }
    }};
}

/// What the usual batch does not need is set up by a function.
static BATCH: Lua = lua!(
    "local function all_questions()\n\n",
    include_str!("lua/record.lua"),
    include_str!("lua/claim.lua"),
    include_str!("lua/settle.lua"),
    include_str!("lua/questions.lua"),
    "end\n\n",
    include_str!("lua/batch.lua")
);
static PING: Lua = lua!(include_str!("lua/ping.lua"));

/// One question to the server.
#[derive(Debug)]
pub(super) enum Call {
    /// A claim or a step.
    Record(Entry),
    /// Whether the scripts can be run, tried out on this key.
    Ping(String),
    /// A command of these words.
    Plain(&'static [&'static str]),
}

impl Call {
    pub(super) fn ping() -> Self {
        // A key of its own, so that no other ping is in its way.
        Self::Ping(format!("{PREFIX}ping:{}", Owner::random()))
    }

    pub(super) fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Record(entry) => Some(entry),
            Self::Ping(_) | Self::Plain(_) => None,
        }
    }

    /// What takes the batch.
    pub(super) fn step(&self) -> Option<&Entry> {
        self.entry().filter(|entry| !entry.is_claim())
    }

    /// What is not a step is a request of its own.
    pub(super) fn request(&self) -> Option<Request<'_>> {
        match self {
            Self::Record(entry) => entry.is_claim().then_some(Request::FirstClaim(entry)),
            Self::Ping(key) => Some(Request::Ping(key)),
            Self::Plain(words) => Some(Request::Plain(words)),
        }
    }
}

/// One command to the server.
#[derive(Debug)]
pub(super) enum Request<'a> {
    /// A claim that is granted when there is no record; when there is one, it takes a batch.
    FirstClaim(&'a Entry),
    /// Any claims and steps.
    Batch(&'a [&'a Entry]),
    /// See [`Call`].
    Ping(&'a str),
    /// See [`Call`].
    Plain(&'static [&'static str]),
}

impl Request<'_> {
    /// As a command; a script by its hash, or whole, which makes the server remember it.
    pub(super) fn command(&self, whole: bool) -> Cmd {
        match self {
            Self::FirstClaim(entry) => {
                let [record, kept, _] = entry.arguments();
                let mut command = Cmd::with_capacity(6, entry.len() + 16);
                command.arg("SET").arg(entry.key()).arg(record).arg("NX").arg("PX").arg(kept);
                command
            }
            Self::Batch(entries) => {
                let size: usize = entries.iter().map(|entry| entry.len() + entry.question().len()).sum();
                let mut command = Cmd::with_capacity(3 + entries.len() * 5, size + 64);
                BATCH.run(&mut command, whole).arg(entries.len());
                for entry in *entries {
                    command.arg(entry.key());
                }
                for entry in *entries {
                    let [head, kept, extra] = entry.arguments();
                    command.arg(entry.question()).arg(head).arg(kept).arg(extra);
                }
                command
            }
            Self::Ping(key) => {
                let mut command = Cmd::new();
                PING.run(&mut command, whole).arg(1).arg(*key);
                command
            }
            Self::Plain(words) => {
                let mut command = Cmd::new();
                command.arg(*words);
                command
            }
        }
    }

    pub(super) fn is_batch(&self) -> bool {
        matches!(self, Self::Batch(_))
    }

    /// What it is about, for errors.
    pub(super) fn subject(&self) -> String {
        match self {
            Self::FirstClaim(entry) => entry.shown_key(),
            Self::Batch(_) => "a batch".to_owned(),
            Self::Ping(key) => (*key).to_owned(),
            Self::Plain(words) => words.join(" "),
        }
    }

    /// Whether both run the same script.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Batch(_), Self::Batch(_)) | (Self::Ping(_), Self::Ping(_)))
    }
}

impl Lua {
    fn run<'a>(&self, command: &'a mut Cmd, whole: bool) -> &'a mut Cmd {
        if whole { command.arg("EVAL").arg(self.source) } else { command.arg("EVALSHA").arg(self.hash.as_str()) }
    }
}
