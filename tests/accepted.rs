//! What is right compiles: every form that the documentation names, and code that is unkind to macros.
// The cases are written as the programs of users, who have modules of `pub` items.
#![allow(unreachable_pub)]

#[path = "ui/shop.rs"]
mod shop;

#[path = "ui/pass/aliases_of_results.rs"]
mod aliases_of_results;
#[path = "ui/pass/classify_forms.rs"]
mod classify_forms;
#[path = "ui/pass/conditional.rs"]
mod conditional;
#[path = "ui/pass/crate_path.rs"]
mod crate_path;
#[path = "ui/pass/dead_letters.rs"]
mod dead_letters;
#[path = "ui/pass/derive_enum.rs"]
mod derive_enum;
#[path = "ui/pass/derive_generics.rs"]
mod derive_generics;
#[path = "ui/pass/derive_struct.rs"]
mod derive_struct;
#[path = "ui/pass/every_key.rs"]
mod every_key;
#[path = "ui/pass/inside_a_function.rs"]
mod inside_a_function;
#[path = "ui/pass/key_forms.rs"]
mod key_forms;
#[path = "ui/pass/limits.rs"]
mod limits;
#[path = "ui/pass/lint_levels.rs"]
mod lint_levels;
#[path = "ui/pass/macro_rules.rs"]
mod macro_rules;
#[path = "ui/pass/many_at_once.rs"]
mod many_at_once;
#[path = "ui/pass/minimal.rs"]
mod minimal;
#[path = "ui/pass/names_of_the_expansion.rs"]
mod names_of_the_expansion;
#[path = "ui/pass/no_implicit_prelude.rs"]
mod no_implicit_prelude;
#[path = "ui/pass/order_of_attributes.rs"]
mod order_of_attributes;
#[path = "ui/pass/parameters.rs"]
mod parameters;
#[path = "ui/pass/precheck_forms.rs"]
mod precheck_forms;
#[path = "ui/pass/raw_identifiers.rs"]
mod raw_identifiers;
#[path = "ui/pass/shadowed_names.rs"]
mod shadowed_names;
#[path = "ui/pass/still_a_function.rs"]
mod still_a_function;
#[cfg(all(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[path = "ui/pass/transactional.rs"]
mod transactional;
#[path = "ui/pass/visibility_and_docs.rs"]
mod visibility_and_docs;

#[test]
fn accepted() {
    aliases_of_results::main();
    classify_forms::main();
    conditional::main();
    crate_path::main();
    dead_letters::main();
    derive_enum::main();
    derive_generics::main();
    derive_struct::main();
    every_key::main();
    inside_a_function::main();
    key_forms::main();
    limits::main();
    lint_levels::main();
    macro_rules::main();
    many_at_once::main();
    minimal::main();
    names_of_the_expansion::main();
    no_implicit_prelude::main();
    order_of_attributes::main();
    parameters::main();
    precheck_forms::main();
    raw_identifiers::main();
    shadowed_names::main();
    still_a_function::main();
    #[cfg(all(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    transactional::main();
    visibility_and_docs::main();
}

#[test]
fn none_is_forgotten() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ui/pass")).map(Iterator::count).ok();
    let modules = include_str!("accepted.rs").matches("#[path = \"ui/pass/").count();
    assert_eq!(files, Some(modules), "a file in tests/ui/pass has no `mod` here");
}
