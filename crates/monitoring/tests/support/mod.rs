//! What several modules of these tests need.

use std::path::PathBuf;
use std::process::{Command, Output};

use tollgate_worker::metrics::{CATALOG, PROCESS, Spec};

/// Returns the path of a file of the repository.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Returns the text of a file of the repository.
pub fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Fails with all offenders at once.
pub fn assert_none(rule: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
}

/// Returns the metrics of the code, those of the process included.
pub fn catalog() -> impl Iterator<Item = &'static Spec> {
    CATALOG.iter().chain(PROCESS)
}

/// Runs `promtool` and returns its output.
pub fn promtool(arguments: &[&str]) -> Output {
    let command = Command::new("promtool").args(arguments).current_dir(path("")).output();
    command.unwrap_or_else(|error| panic!("promtool: {error}; Debian's package `prometheus` has it"))
}
