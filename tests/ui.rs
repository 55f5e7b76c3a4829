//! What the compiler says of every mistake.
//!
//! After a change of a message: `TRYBUILD=overwrite cargo test --test ui`, then read what changed as a user would.
// What the compiler says of a type depends on which features are there.
#![allow(clippy::unwrap_used)]
#![cfg(all(feature = "rabbitmq", feature = "mysql", feature = "postgres", feature = "sqlite"))]

#[test]
fn diagnostics() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/mistakes/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}

/// The page of diagnostics shows what the cases record.
#[test]
fn the_page_tells_the_truth() {
    let recorded: Vec<String> = ["mistakes", "fail"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(format!("{}/tests/ui/{folder}", env!("CARGO_MANIFEST_DIR"))).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "stderr"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let page = include_str!("../docs/diagnostics.md");
    let in_tables = page.lines().filter(|line| line.starts_with('|')).filter_map(|line| line.split("``").nth(1));
    let quoted: Vec<&str> = in_tables.chain(page.lines().filter(|line| line.starts_with("error: "))).collect();
    assert!(quoted.len() > 30, "only {} messages were found in the page", quoted.len());
    for message in quoted {
        let parts: Vec<&str> = message.trim().split('…').collect();
        let is_recorded = recorded.iter().any(|text| parts.iter().all(|part| text.contains(part)));
        assert!(is_recorded, "no case of tests/ui says: {message}");
    }
}
