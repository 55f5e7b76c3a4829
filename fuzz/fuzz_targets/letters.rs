#![no_main]

libfuzzer_sys::fuzz_target!(|foreign: mqguard_fuzz::messages::Foreign| foreign.try_it());
