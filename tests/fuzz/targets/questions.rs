#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ibifs_fuzz::questions::check(data));
