//! What the compiler says of every mistake.
//!
//! After a change of a message: `TRYBUILD=overwrite cargo test --all-features --test ui`, then read what changed as a user would.
// How the compiler calls a type depends on which crates are there: the texts are those of all features.
#![cfg(all(feature = "rabbitmq", feature = "redis", feature = "tls"))]

#[test]
fn diagnostics() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
