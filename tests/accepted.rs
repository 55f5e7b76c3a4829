//! What is right compiles: every form that the documentation names, and code that is unkind to macros.
// The cases are written as the programs of users, who have modules of `pub` items.
#![allow(unreachable_pub)]

#[path = "ui/shop.rs"]
mod shop;

#[path = "ui/pass/aliases_of_results.rs"]
mod aliases_of_results;
#[path = "ui/pass/called_by_others.rs"]
mod called_by_others;
#[path = "ui/pass/classify_forms.rs"]
mod classify_forms;
#[path = "ui/pass/conditional.rs"]
mod conditional;
#[path = "ui/pass/conditional_attribute.rs"]
mod conditional_attribute;
#[path = "ui/pass/crate_path.rs"]
mod crate_path;
#[path = "ui/pass/dead_letters.rs"]
mod dead_letters;
#[path = "ui/pass/derive_enum.rs"]
mod derive_enum;
#[path = "ui/pass/derive_forms.rs"]
mod derive_forms;
#[path = "ui/pass/derive_generics.rs"]
mod derive_generics;
#[path = "ui/pass/derive_struct.rs"]
mod derive_struct;
#[path = "ui/pass/errors.rs"]
mod errors;
#[path = "ui/pass/every_key.rs"]
mod every_key;
#[path = "ui/pass/imports.rs"]
mod imports;
#[path = "ui/pass/inside_a_function.rs"]
mod inside_a_function;
#[path = "ui/pass/inside_items.rs"]
mod inside_items;
#[path = "ui/pass/instrumented.rs"]
mod instrumented;
#[path = "ui/pass/key_forms.rs"]
mod key_forms;
#[path = "ui/pass/limits.rs"]
mod limits;
#[path = "ui/pass/lint_levels.rs"]
mod lint_levels;
#[path = "ui/pass/literals.rs"]
mod literals;
#[path = "ui/pass/macro_rules.rs"]
mod macro_rules;
#[path = "ui/pass/macro_with_attributes.rs"]
mod macro_with_attributes;
#[path = "ui/pass/many_at_once.rs"]
mod many_at_once;
#[path = "ui/pass/many_parameters.rs"]
mod many_parameters;
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
#[path = "ui/pass/patterns.rs"]
mod patterns;
#[path = "ui/pass/payloads.rs"]
mod payloads;
#[path = "ui/pass/precheck_forms.rs"]
mod precheck_forms;
#[path = "ui/pass/raw_identifiers.rs"]
mod raw_identifiers;
#[path = "ui/pass/re_exported.rs"]
mod re_exported;
#[path = "ui/pass/same_name_in_modules.rs"]
mod same_name_in_modules;
#[path = "ui/pass/shadowed_names.rs"]
mod shadowed_names;
#[path = "ui/pass/state_machine_and_outage.rs"]
mod state_machine_and_outage;
#[path = "ui/pass/still_a_function.rs"]
mod still_a_function;
#[path = "ui/pass/strict_lints.rs"]
mod strict_lints;
#[cfg(all(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[path = "ui/pass/transactional.rs"]
mod transactional;
#[path = "ui/pass/unicode_names.rs"]
mod unicode_names;
#[path = "ui/pass/visibility_and_docs.rs"]
mod visibility_and_docs;

#[test]
fn accepted() {
    aliases_of_results::main();
    called_by_others::main();
    classify_forms::main();
    conditional::main();
    conditional_attribute::main();
    crate_path::main();
    dead_letters::main();
    derive_enum::main();
    derive_forms::main();
    derive_generics::main();
    derive_struct::main();
    errors::main();
    every_key::main();
    imports::main();
    inside_a_function::main();
    inside_items::main();
    instrumented::main();
    key_forms::main();
    limits::main();
    lint_levels::main();
    literals::main();
    macro_rules::main();
    macro_with_attributes::main();
    many_at_once::main();
    many_parameters::main();
    minimal::main();
    names_of_the_expansion::main();
    no_implicit_prelude::main();
    order_of_attributes::main();
    parameters::main();
    patterns::main();
    payloads::main();
    precheck_forms::main();
    raw_identifiers::main();
    re_exported::main();
    same_name_in_modules::main();
    shadowed_names::main();
    state_machine_and_outage::main();
    still_a_function::main();
    strict_lints::main();
    #[cfg(all(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    transactional::main();
    unicode_names::main();
    visibility_and_docs::main();
}

#[test]
fn none_is_forgotten() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ui/pass")).map(Iterator::count).ok();
    let modules = include_str!("accepted.rs").matches("#[path = \"ui/pass/").count();
    assert_eq!(files, Some(modules), "a file in tests/ui/pass has no `mod` here");
}
