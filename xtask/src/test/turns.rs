//! Which tests run on which version of RabbitMQ.

use super::plan::{self, Step};
use crate::versions::{Choice, RELEASES, Release};

/// Where a RabbitMQ is to come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The user has named it.
    Given,
    /// The machine's own.
    Installed,
    /// A Debian release.
    Release(&'static Release),
}

impl Place {
    /// The version of a release.
    pub(super) fn version(&self) -> Option<&'static str> {
        match self {
            Self::Release(release) => Some(release.version),
            _ => None,
        }
    }
}

/// Tests on one RabbitMQ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// The first that can be had is taken.
    pub(super) places: Vec<Place>,
    pub(super) suite: Suite,
}

impl Turn {
    /// Everything on the RabbitMQ that the user has named.
    pub(super) fn given() -> Self {
        Self { places: vec![Place::Given], suite: Suite::All }
    }
}

/// What runs in a turn, unless the user says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suite {
    /// Every test.
    All,
    /// Those that need RabbitMQ.
    Broker,
    /// Of those, the ones that take little time.
    Quick,
}

/// The test programs with tests that need RabbitMQ. The first ones are quick.
const NEED_RABBITMQ: [&str; 6] = ["broker_conformance", "servers", "poison", "chaos", "cluster", "soak"];
const QUICK: usize = 2;

/// What the quick ones do without, by parts of their names: thousands of orders in processes of their own, waits for nodes that restart,
/// what a busy machine makes late, and complaints that are the same for every RabbitMQ.
const SLOW: [&str; 7] = ["disturbed::", "lateness::", "payments::", "processes::", "recovery::", "restart::", "start::"];

impl Suite {
    /// The runs of cargo for these extra arguments.
    pub(super) fn steps(self, extra: &[String]) -> Vec<Step> {
        let (programs, skipped) = match self {
            _ if !extra.is_empty() => return plan::plan(extra),
            Self::All => return plan::plan(extra),
            Self::Broker => (&NEED_RABBITMQ[..], &[][..]),
            Self::Quick => (&NEED_RABBITMQ[..QUICK], &SLOW[..]),
        };
        let mut arguments = plan::common(&[]);
        arguments.push("--no-fail-fast".to_owned());
        arguments.extend(programs.iter().map(|program| format!("--test={program}")));
        // The others have run on the first RabbitMQ, or do not care which one it is.
        arguments.extend(["--", "--ignored"].map(str::to_owned));
        arguments.extend(skipped.iter().map(|test| format!("--skip={test}")));
        vec![Step { name: "tests of the broker", arguments, is_build: false }]
    }
}

/// The turns for what the user has chosen, on a machine with this RabbitMQ of its own.
pub(super) fn turns(choice: Option<Choice>, has_extra: bool, installed: Option<&str>) -> Vec<Turn> {
    let is_installed = |release: &Release| installed.is_some_and(|version| release.has(version));
    let others = || RELEASES.iter().filter(|release| !is_installed(release)).map(Place::Release);
    let turn = |places, suite| Turn { places, suite };
    let mut turns = vec![match choice {
        Some(Choice::One(release)) => turn(vec![Place::Release(release)], Suite::All),
        _ => turn(vec![Place::Installed], Suite::All),
    }];
    match choice {
        Some(Choice::All) => turns.extend(others().map(|place| turn(vec![place], Suite::Broker))),
        // The newest differs most.
        None if !has_extra => turns.push(turn(others().rev().collect(), Suite::Quick)),
        _ => {}
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What runs where, in short.
    fn shown(choice: Option<Choice>, has_extra: bool) -> Vec<(String, Suite)> {
        let name = |place: &Place| place.version().unwrap_or("own");
        let places = |turn: &Turn| turn.places.iter().map(name).collect::<Vec<_>>().join(" or ");
        turns(choice, has_extra, Some("3.10.8")).iter().map(|turn| (places(turn), turn.suite)).collect()
    }

    fn is(turns: &[(String, Suite)], expected: &[(&str, Suite)]) -> bool {
        turns.iter().map(|(places, suite)| (places.as_str(), *suite)).eq(expected.iter().copied())
    }

    #[test]
    fn everything_runs_on_the_machines_own_and_a_part_on_one_more() {
        assert!(is(&shown(None, false), &[("own", Suite::All), ("4.3 or 4.0", Suite::Quick)]));
        assert!(is(&shown(None, true), &[("own", Suite::All)]));
        assert!(is(&shown(Some(Choice::Installed), false), &[("own", Suite::All)]));
    }

    #[test]
    fn a_version_that_is_chosen_runs_everything() {
        assert!(is(&shown(Some(Choice::One(&RELEASES[1])), false), &[("4.0", Suite::All)]));
    }

    #[test]
    fn all_versions_run_what_needs_them() {
        let all = [("own", Suite::All), ("4.0", Suite::Broker), ("4.3", Suite::Broker)];
        assert!(is(&shown(Some(Choice::All), false), &all));
        assert!(is(&shown(Some(Choice::All), true), &all));
    }

    #[test]
    fn extra_arguments_are_the_same_on_every_version() {
        let extra = ["--test=servers".to_owned()];
        assert_eq!(Suite::Broker.steps(&extra), Suite::All.steps(&extra));
        assert_eq!(Suite::Quick.steps(&extra), Suite::All.steps(&extra));
    }

    #[test]
    fn of_further_versions_only_what_needs_rabbitmq_runs() {
        let steps = Suite::Broker.steps(&[]);
        let lines: Vec<String> = steps.iter().map(|step| step.arguments.join(" ")).collect();
        let programs = "--test=broker_conformance --test=servers --test=poison --test=chaos --test=cluster --test=soak";
        assert_eq!(lines, [format!("test --workspace --all-features --no-fail-fast {programs} -- --ignored")]);
        let quick = Suite::Quick.steps(&[]).iter().map(|step| step.arguments.join(" ")).collect::<String>();
        assert!(quick.contains("--test=servers -- --ignored --skip=disturbed:: --skip="), "{quick}");
    }

    /// By what their sources say why a test is ignored.
    #[test]
    fn every_program_with_such_tests_is_known() -> std::io::Result<()> {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            let Some(name) = path.file_stem().and_then(|name| name.to_str()).filter(|_| path.extension().is_some()) else {
                continue;
            };
            let parts = std::fs::read_dir(directory.join(name)).into_iter().flatten().flatten().map(|entry| entry.path());
            let needs = |file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("ignore = \"needs RabbitMQ"));
            if parts.chain([path.clone()]).any(needs) {
                found.push(name.to_owned());
            }
        }
        found.sort();
        let mut known = NEED_RABBITMQ;
        known.sort_unstable();
        assert_eq!(found, known);
        Ok(())
    }
}
