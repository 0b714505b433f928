//! The libFuzzer program of [`tollgate_fuzz::decode`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tollgate_fuzz::decode::check(input));
