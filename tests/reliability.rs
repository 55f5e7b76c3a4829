//! Every test that `docs/reliability.md` names is there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::path::Path;

/// All sources under a directory, joined.
fn sources(directory: &Path, text: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The names in the last column of the tables: `file::name`, of which the file is told by its first part.
fn named(page: &str) -> Vec<(&str, &str)> {
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains("::"));
    let cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(|name| name.rsplit_once("::").unwrap_or_else(|| panic!("`{name}` names no file"))).collect()
}

#[test]
fn every_test_that_the_page_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let named = named(&page);
    assert!(named.len() > 40, "{} tests are named", named.len());
    let missing: BTreeSet<_> = named
        .into_iter()
        .filter(|(file, name)| {
            let mut text = String::new();
            for place in [format!("tests/{file}.rs"), format!("tests/servers/{file}.rs"), format!("tests/{file}")] {
                let place = root.join(place);
                if place.is_dir() {
                    sources(&place, &mut text);
                } else if let Ok(source) = std::fs::read_to_string(&place) {
                    text.push_str(&source);
                }
            }
            let Some(at) = text.find(&format!("fn {name}(")) else { return true };
            let attributes = text[..at].rsplit("\n}\n").next().unwrap_or_default();
            // Those of the conformance suite are made tests by a macro.
            !attributes.contains("test]") && !attributes.contains("test(") && *file != "broker_conformance"
        })
        .collect();
    assert!(missing.is_empty(), "named and not there: {missing:?}");
}
