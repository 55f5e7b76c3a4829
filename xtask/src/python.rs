//! A Python with pika, for the tests that exchange messages with another client library.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::bail;

use crate::{run, signals};

/// The variable that names it to the tests.
pub(crate) const VARIABLE: &str = "MQGUARD_TEST_PYTHON";

/// Finds one, or makes one in the target directory; none if that is impossible.
pub(crate) fn with_pika(target_directory: &Path) -> anyhow::Result<Option<PathBuf>> {
    if let Some(python) = std::env::var_os(VARIABLE).filter(|python| !python.is_empty()) {
        return Ok(Some(python.into()));
    }
    let environment = target_directory.join("pika-venv");
    let own = environment.join("bin/python3");
    for python in [PathBuf::from("python3"), own.clone()] {
        if imports_pika(&python) {
            return Ok(Some(python));
        }
    }
    eprintln!("xtask: no python3 with pika here; making one in {}", environment.display());
    match make(&environment, &own) {
        Ok(()) => Ok(Some(own)),
        Err(error) => {
            signals::check()?;
            eprintln!(
                "xtask: no Python with pika: {error:#}. {VARIABLE} stays unset: what needs it is \
                 not tested. (Debian: apt-get install python3-venv, or python3-pika.)"
            );
            Ok(None)
        }
    }
}

fn imports_pika(python: &Path) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import pika"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn make(environment: &Path, python: &Path) -> anyhow::Result<()> {
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(environment);
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pika"]);
    for mut command in [create, install] {
        let status = run::announced(command.stdout(std::io::stderr()))?;
        if !status.success() {
            bail!("{} failed: {status}", run::shown(&command));
        }
    }
    if !imports_pika(python) {
        bail!("pika cannot be imported after its installation");
    }
    Ok(())
}
