//! The libFuzzer program of [`tollgate_fuzz::checkpoint`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tollgate_fuzz::checkpoint::check(input));
