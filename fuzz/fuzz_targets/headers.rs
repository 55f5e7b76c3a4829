#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mqguard_fuzz::messages::content_header(data));
