#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ibifs_fuzz::learned::check(data));
