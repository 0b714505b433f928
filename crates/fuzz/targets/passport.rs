//! The libFuzzer program of [`tollgate_fuzz::passport`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tollgate_fuzz::passport::check(input));
