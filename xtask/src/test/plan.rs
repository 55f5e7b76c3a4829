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

/// Those of them that choose test programs, which may run the examples, and do not have cargo build these.
const TEST_PROGRAMS: [&str; 2] = ["--test", "--tests"];

/// Arguments of both `cargo test` and `cargo build` that say what is built, and how. These have a value.
const BUILD_VALUES: [&str; 8] =
    ["--package", "--exclude", "--features", "--profile", "--target", "--target-dir", "--jobs", "--config"];

/// The same as letters.
const BUILD_LETTERS: [char; 4] = ['p', 'F', 'j', 'Z'];

/// Those without a value.
const BUILD_FLAGS: [&str; 8] =
    ["--workspace", "--all-features", "--no-default-features", "--release", "-r", "--locked", "--offline", "--frozen"];

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
        let tests = step("tests", &["--no-fail-fast"], !has_doc);
        let has_program = for_cargo.iter().any(|argument| is_option(argument, &TEST_PROGRAMS));
        return has_program.then(|| examples(for_cargo)).into_iter().chain([tests]).collect();
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

/// Builds the examples, as the tests are built that this has cargo run.
fn examples(for_cargo: &[String]) -> Step {
    let mut arguments = common(for_cargo);
    arguments[0] = "build".to_owned();
    arguments.push("--examples".to_owned());
    let mut rest = for_cargo.iter();
    while let Some(argument) = rest.next() {
        let has_value = is_option(argument, &BUILD_VALUES) || BUILD_LETTERS.iter().any(|letter| is_short(argument, *letter));
        if has_value || BUILD_FLAGS.contains(&argument.as_str()) {
            arguments.push(argument.clone());
        }
        let is_whole = argument.contains('=') || (!argument.starts_with("--") && argument.len() > 2);
        if has_value && !is_whole {
            arguments.extend(rest.next().cloned());
        }
    }
    Step { name: "build of the examples", arguments, is_build: true }
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
        assert_eq!(planned("--bin xtask"), ["test --workspace --all-features --no-fail-fast --bin xtask -- --include-ignored"]);
        assert_eq!(planned("--doc"), ["test --workspace --all-features --no-fail-fast --doc"]);
    }

    #[test]
    fn chosen_test_programs_find_the_examples_built() {
        assert_eq!(
            planned("--test retry"),
            [
                "build --workspace --all-features --examples",
                "test --workspace --all-features --no-fail-fast --test retry -- --include-ignored",
            ]
        );
        assert!(planned("--tests")[0].starts_with("build "));
    }

    #[test]
    fn the_examples_are_built_as_the_tests_are() {
        assert_eq!(
            planned("--release --test=soak name -p mqguard -Fredis --features mysql --profile=ci -j 1 --no-run -- --nocapture")
                [0],
            "build --examples --release -p mqguard -Fredis --features mysql --profile=ci -j 1"
        );
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
