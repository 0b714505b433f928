//! The libFuzzer program of [`tollgate_fuzz::json`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tollgate_fuzz::json::check(input));
