#![no_main]

libfuzzer_sys::fuzz_target!(|two: mqguard_fuzz::names::Two| two.try_it());
