//! Tests what others run the project with: the Dockerfile, docker-compose.yml, the files that these mount, versions and workflows.
//!
//! `tests/image/run` builds and runs the image itself, and `tests/deploy/tools/run` asks the tools that the files are written for.

mod compose;
mod composition;
mod dockerfile;
mod releases;
mod yaml;

/// Returns the text of a file of this repository.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the version of the workspace.
fn workspace_version() -> String {
    value_of(&read("Cargo.toml"), "version")
}

/// Returns the value of the first line `key = "value"` of a TOML file.
fn value_of(text: &str, key: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key}")).trim().trim_matches('"').to_owned()
}
