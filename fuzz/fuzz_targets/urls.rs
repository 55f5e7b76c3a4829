#![no_main]

libfuzzer_sys::fuzz_target!(|url: mqguard_fuzz::names::Url| url.try_it());
