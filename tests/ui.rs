//! What the compiler says of every mistake.
//!
//! After a change of a message: `TRYBUILD=overwrite cargo test --test ui`, then read what changed as a user would.
// How the compiler calls a type depends on which crates are there: without lapin some names are shorter.
#![cfg(feature = "rabbitmq")]

#[test]
fn diagnostics() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
