//! What `cargo xtask test` has cargo do.

/// Arguments of `cargo test` that choose among the kinds of targets.
const TARGETS: [&str; 11] = [
    "--lib",
    "--bin",
    "--bins",
    "--test",
    "--tests",
    "--example",
    "--examples",
    "--bench",
    "--benches",
    "--all-targets",
    "--doc",
];

/// One run of cargo.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) arguments: Vec<String>,
    /// Nothing after it makes sense if it fails.
    pub(super) is_build: bool,
}

/// The runs of cargo for these extra arguments.
///
/// Documentation tests run by themselves: there, "ignored" means an example that is not meant to
/// run, and `--include-ignored` would run it. The build comes first because it also builds the
/// examples, which `cargo test --tests` does not, and tests may run them.
pub(super) fn plan(extra: &[String]) -> Vec<Step> {
    let mut halves = extra.splitn(2, |argument| argument == "--");
    let for_cargo = halves.next().unwrap_or_default();
    let for_tests = halves.next().unwrap_or_default();

    let common = common(for_cargo);
    let step = |name, more: &[&str], include_ignored: bool| {
        let mut arguments = common.clone();
        arguments.extend(more.iter().map(ToString::to_string));
        arguments.extend_from_slice(for_cargo);
        if include_ignored || !for_tests.is_empty() {
            arguments.push("--".to_owned());
        }
        if include_ignored {
            arguments.push("--include-ignored".to_owned());
        }
        arguments.extend_from_slice(for_tests);
        Step { name, arguments, is_build: false }
    };
    if for_cargo.iter().any(|argument| is_option(argument, &TARGETS)) {
        let has_doc = for_cargo.iter().any(|argument| argument == "--doc");
        return vec![step("tests", &["--no-fail-fast"], !has_doc)];
    }
    let mut steps =
        vec![Step { is_build: true, ..step("build", &["--no-run"], false) }, step("tests", &["--no-fail-fast", "--tests"], true)];
    // A program has no documentation tests, and cargo calls it an error to ask for them.
    let only_xtask = ["-p xtask", "--package xtask", "--package=xtask", "-pxtask"];
    if !only_xtask.iter().any(|only| for_cargo.join(" ").starts_with(only)) {
        steps.push(step("documentation tests", &["--no-fail-fast", "--doc"], false));
    }
    steps
}

/// How every run of cargo begins, unless these arguments choose packages and features.
pub(super) fn common(for_cargo: &[String]) -> Vec<String> {
    let mut common = vec!["test".to_owned()];
    if !for_cargo.iter().any(|a| is_option(a, &["--package"]) || is_short(a, 'p')) {
        common.push("--workspace".to_owned());
    }
    let features = ["--features", "--all-features", "--no-default-features"];
    if !for_cargo.iter().any(|a| is_option(a, &features) || is_short(a, 'F')) {
        common.push("--all-features".to_owned());
    }
    common
}

fn is_option(argument: &str, names: &[&str]) -> bool {
    names.contains(&argument.split('=').next().unwrap_or_default())
}

fn is_short(argument: &str, name: char) -> bool {
    argument.strip_prefix('-').is_some_and(|rest| rest.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Vec<String> {
        let extra: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
        plan(&extra).iter().map(|step| step.arguments.join(" ")).collect()
    }

    #[test]
    fn without_arguments_everything_runs() {
        assert_eq!(
            planned(""),
            [
                "test --workspace --all-features --no-run",
                "test --workspace --all-features --no-fail-fast --tests -- --include-ignored",
                "test --workspace --all-features --no-fail-fast --doc",
            ]
        );
    }

    #[test]
    fn a_package_and_features_replace_all_of_them() {
        assert_eq!(
            planned("-p mqguard --features=redis name -- --nocapture"),
            [
                "test --no-run -p mqguard --features=redis name -- --nocapture",
                "test --no-fail-fast --tests -p mqguard --features=redis name \
                 -- --include-ignored --nocapture",
                "test --no-fail-fast --doc -p mqguard --features=redis name -- --nocapture",
            ]
        );
    }

    #[test]
    fn a_chosen_target_runs_alone() {
        assert_eq!(planned("--test retry"), ["test --workspace --all-features --no-fail-fast --test retry -- --include-ignored"]);
        assert_eq!(planned("--doc"), ["test --workspace --all-features --no-fail-fast --doc"]);
    }

    #[test]
    fn a_program_has_no_documentation_tests() {
        assert_eq!(planned("-p xtask").len(), 2);
    }

    #[test]
    fn a_profile_is_not_a_package() {
        assert!(planned("--profile ci").iter().all(|line| line.contains("--workspace")));
    }
}
