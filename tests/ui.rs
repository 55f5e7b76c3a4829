//! What the compiler says of every mistake.
//!
//! After a change of a message: `TRYBUILD=overwrite cargo test --test ui`, then read what changed as a user would.
// What the compiler says of a type depends on which features are there.
#![cfg(all(feature = "rabbitmq", feature = "mysql", feature = "postgres", feature = "sqlite"))]

#[test]
fn diagnostics() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
