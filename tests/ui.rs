//! What the compiler says of every mistake.
//!
//! After a change of a message: `TRYBUILD=overwrite cargo test --test ui`, then read what changed as a user would.
#![allow(clippy::unwrap_used)]
// What the compiler says of a type depends on which features are there.
#![cfg(all(feature = "rabbitmq", feature = "mysql", feature = "postgres", feature = "sqlite"))]

#[test]
fn diagnostics() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/mistakes/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}

/// The pages show what the cases record.
#[test]
fn the_pages_tell_the_truth() {
    let recorded: Vec<String> = ["mistakes", "fail"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(format!("{}/tests/ui/{folder}", env!("CARGO_MANIFEST_DIR"))).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "stderr"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let mut unsaid = Vec::new();
    for page in [include_str!("../docs/diagnostics.md"), include_str!("../docs/attribute.md")] {
        let spans = page.lines().filter(|line| !line.starts_with("```")).filter_map(|line| line.split("``").nth(1));
        let quoted: Vec<&str> = spans.chain(page.lines().filter(|line| line.starts_with("error: "))).collect();
        assert!(quoted.len() > 30, "only {} messages were found in the page", quoted.len());
        unsaid.extend(quoted.into_iter().filter(|message| {
            let parts: Vec<&str> = message.trim().split('…').collect();
            !recorded.iter().any(|text| parts.iter().all(|part| text.contains(part)))
        }));
    }
    assert!(unsaid.is_empty(), "no case of tests/ui says:\n{}", unsaid.join("\n"));
}
