//! The libFuzzer program of [`tollgate_fuzz::hosts`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tollgate_fuzz::hosts::check(input));
