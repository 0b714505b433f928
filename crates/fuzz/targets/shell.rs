//! The libFuzzer program of [`tollgate_fuzz::shell`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tollgate_fuzz::shell::check(input));
