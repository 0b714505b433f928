//! Differential fuzzing: what the rules allow is compared with what really happens.

pub mod commands;
