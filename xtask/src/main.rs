//! Development commands: `cargo xtask --help`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

mod bench;
mod fuzz;
mod install;
mod lint;
mod ports;
mod process;
mod python;
mod rebuild;
mod run;
mod servers;
mod services;
mod signals;
mod test;
mod versions;
mod watchdog;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development commands of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every test, with private servers that are started for it and stopped after it.
    ///
    /// Missing servers are installed with apt-get, as root or by passwordless sudo. To use existing
    /// ones instead, name them in MQGUARD_TEST_RABBITMQ (amqp://…), MQGUARD_TEST_REDIS (redis://…),
    /// MQGUARD_TEST_MARIADB (mysql://…) and MQGUARD_TEST_POSTGRES (postgres://…); beside the first,
    /// MQGUARD_TEST_RABBITMQ_CTL may name a `rabbitmqctl` for it.
    Test {
        /// The RabbitMQ to test with: `installed` for the machine's own, a version (3.10, 4.0, 4.3), or `all`.
        ///
        /// Versions that the machine does not have come from other Debian releases, by debootstrap (as root) into the target directory.
        /// What cannot be had is skipped. After the first version, only the tests that need RabbitMQ run. Without this option all
        /// tests run on the machine's own and, if no further arguments choose among them, the quick ones that need RabbitMQ on one more.
        #[arg(long, value_name = "VERSION")]
        rabbitmq: Option<versions::Choice>,
        /// Write into this page which of the faults that it lists are met on which RabbitMQ.
        #[arg(long, value_name = "FILE", conflicts_with = "extra")]
        report: Option<PathBuf>,
        /// More arguments for `cargo test`; after another `--`, for the test programs.
        #[arg(last = true)]
        extra: Vec<String>,
    },
    /// Measure throughput beside hand-written twins, on private servers, in a release build.
    ///
    /// MQGUARD_BENCH_MESSAGES and MQGUARD_BENCH_ROUNDS change how much and how often.
    Bench,
    /// Measure how long the compiler takes for a change of one among 100 consumers, beside hand-written loops.
    Rebuild,
    /// Run the fuzz targets: what reads foreign bytes gets any bytes.
    Fuzz {
        /// The targets, as in `fuzz/fuzz_targets`; all, when none is named.
        targets: Vec<String>,
        /// Inputs for each.
        #[arg(long, default_value_t = 100_000)]
        runs: u64,
        /// Another number makes other inputs.
        #[arg(long, default_value_t = 1)]
        seed: u32,
    },
    /// Check formatting, lints, documentation, each feature alone and missing, and the dependencies.
    Lint,
    /// Keep private servers (RabbitMQ, Redis, MariaDB, PostgreSQL) running for development, below the
    /// target directory.
    ///
    /// `eval "$(cargo xtask services up)"` also sets the variables that name them.
    #[command(subcommand)]
    Services(services::Command),
    /// Ends the servers of a command that cannot do it any more; reads about them from its input.
    #[command(name = watchdog::SUBCOMMAND, hide = true)]
    Watchdog,
}

fn main() -> ExitCode {
    match execute(&Arguments::parse().command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => match error.downcast_ref::<signals::Interrupted>() {
            Some(interrupted) => {
                eprintln!("xtask: {interrupted}");
                ExitCode::from(interrupted.exit_code())
            }
            None => {
                eprintln!("xtask: error: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}

/// Runs the command; the exit code.
fn execute(command: &Command) -> anyhow::Result<u8> {
    signals::install()?;
    match command {
        Command::Test { rabbitmq, report, extra } => test::run(*rabbitmq, report.as_deref(), extra),
        Command::Bench => bench::run(),
        Command::Fuzz { targets, runs, seed } => fuzz::run(targets, *runs, *seed),
        Command::Rebuild => rebuild::run(),
        Command::Lint => lint::run(),
        Command::Services(command) => services::run(command),
        Command::Watchdog => {
            watchdog::run(std::io::stdin());
            Ok(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }

    #[test]
    fn everything_after_the_dashes_goes_to_cargo_test() -> Result<(), clap::Error> {
        let line = ["xtask", "test", "--", "-p", "mqguard", "--", "--nocapture"];
        let Command::Test { extra, rabbitmq: None, report: None } = Arguments::try_parse_from(line)?.command else {
            return Err(clap::Error::new(clap::error::ErrorKind::InvalidSubcommand));
        };
        assert_eq!(extra, ["-p", "mqguard", "--", "--nocapture"]);
        Ok(())
    }
}
