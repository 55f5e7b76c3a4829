#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| mqguard_fuzz::macros::duration(text));
