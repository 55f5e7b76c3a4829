//! What became of the scenarios of a page, on which RabbitMQ: a table in that page.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

const BEGIN: &str = "<!-- results: written by `cargo xtask test --rabbitmq all --report FILE` -->\n";
const END: &str = "<!-- end of the results -->\n";
const HEADING: &str = "\n## Results\n\nWhat became of the faults above on each RabbitMQ. A test that needs none runs once, in the first column; where that is so of some\n\
of a fault's tests, the others say \"in part\".\n\n";

/// Which tests passed, by the names of their functions. One that runs several times has to pass each time.
#[derive(Debug, Default)]
pub(super) struct Outcomes(BTreeMap<String, bool>);

impl Outcomes {
    /// Reads a line of a test program: `test cuts::a_name ... ok`.
    pub(super) fn note(&mut self, line: &str) {
        let Some((name, outcome)) = line.strip_prefix("test ").and_then(|line| line.split_once(" ... ")) else { return };
        let passed = match outcome.trim() {
            "ok" => true,
            "FAILED" => false,
            _ => return,
        };
        let name = name.rsplit("::").next().unwrap_or(name).to_owned();
        self.0.entry(name).and_modify(|all| *all &= passed).or_insert(passed);
    }

    /// What became of a scenario with these tests.
    fn verdict(&self, tests: &[&str]) -> &'static str {
        let found: Vec<bool> = tests.iter().filter_map(|test| self.0.get(*test)).copied().collect();
        match () {
            () if found.contains(&false) => "**failed**",
            () if found.is_empty() => "",
            () if found.len() < tests.len() => "in part",
            () => "passed",
        }
    }
}

/// Writes the table into the page, in place of the one that is there or at its end.
pub(super) fn write(page: &Path, turns: &[(String, Outcomes)]) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let written = with_table(&text, turns).with_context(|| page.display().to_string())?;
    std::fs::write(page, written).with_context(|| page.display().to_string())
}

fn with_table(page: &str, turns: &[(String, Outcomes)]) -> anyhow::Result<String> {
    let Some((before, rest)) = page.split_once(BEGIN) else {
        return Ok([page, HEADING, BEGIN, &table(page, turns), END].concat());
    };
    let (_, after) = rest.split_once(END).context("there is no line that ends the results")?;
    Ok([before, BEGIN, &table(before, turns), END, after].concat())
}

fn table(page: &str, turns: &[(String, Outcomes)]) -> String {
    let columns =
        |cell: &dyn Fn(&(String, Outcomes)) -> String| turns.iter().map(|turn| format!(" {} |", cell(turn))).collect::<String>();
    let mut table = format!("\n| fault |{}\n|---|{}\n", columns(&|(name, _)| name.clone()), "---|".repeat(turns.len()));
    for (fault, tests) in scenarios(page) {
        table += &format!("| {fault} |{}\n", columns(&|(_, outcomes)| outcomes.verdict(&tests).to_owned()));
    }
    table + "\n"
}

/// The faults in the tables of a page, with the functions that the last columns name.
fn scenarios(page: &str) -> Vec<(&str, Vec<&str>)> {
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains("::"));
    rows.filter_map(|row| {
        let row = row.trim_matches('|');
        let (fault, rest) = row.split_once('|')?;
        let tests = rest.rsplit('|').next()?.split('`').skip(1).step_by(2);
        Some((fault.trim(), tests.map(|test| test.rsplit("::").next().unwrap_or(test)).collect()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| fault | what happens | tests |\n|---|---|---|\n| a cut | nothing | `cuts::one`, `cuts::two` |\n| a kill | much | `dead::three` |\n";

    fn outcomes(lines: &[&str]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        lines.iter().for_each(|line| outcomes.note(line));
        outcomes
    }

    #[test]
    fn each_fault_has_a_line_and_each_broker_a_column() -> anyhow::Result<()> {
        let page = format!("{PAGE}\n{BEGIN}an old table\n{END}and more\n");
        let all = outcomes(&["test cuts::one ... ok", "test cuts::two ... ok", "test three ... ok", "running 3 tests"]);
        let some = outcomes(&["test cuts::one ... ok", "test three ... FAILED", "test three ... ok", "test x ... ignored"]);
        let written = with_table(&page, &[("RabbitMQ 3.10.8".into(), all), ("RabbitMQ 4.3.6".into(), some)])?;
        let table = "\n| fault | RabbitMQ 3.10.8 | RabbitMQ 4.3.6 |\n|---|---|---|\n| a cut | passed | in part |\n| a kill | passed | **failed** |\n\n";
        assert_eq!(written, format!("{PAGE}\n{BEGIN}{table}{END}and more\n"));
        Ok(())
    }

    #[test]
    fn what_did_not_run_is_left_open() {
        assert_eq!(outcomes(&[]).verdict(&["one"]), "");
    }

    #[test]
    fn a_page_without_results_gets_them_at_its_end() -> anyhow::Result<()> {
        let first = with_table(PAGE, &[("RabbitMQ 4.0.5".into(), outcomes(&["test three ... ok"]))])?;
        assert!(first.starts_with(&format!("{PAGE}{HEADING}{BEGIN}")) && first.ends_with(END), "{first}");
        assert_eq!(with_table(&first, &[("RabbitMQ 4.0.5".into(), outcomes(&["test three ... ok"]))])?, first);
        assert!(with_table(&format!("{PAGE}{BEGIN}"), &[]).is_err());
        Ok(())
    }
}
