//! Checks that the core only decides: no crate that does I/O, reads clocks or counts is in its dependency tree, nor in those of the other pure
//! crates.

use std::collections::BTreeSet;
use std::process::Command;

/// The crates that must not be there: Kafka, runtimes, metrics, servers and clients, logging.
#[rustfmt::skip]
const IMPURE: [&str; 12] = [
    "rdkafka", "rdkafka-sys", "tokio", "mio", "async-std", "smol", "prometheus", "hyper", "axum", "openssl", "tracing",
    "tracing-subscriber",
];

/// Returns the crates that a package is built from, itself included.
fn crates_of(package: &str) -> BTreeSet<String> {
    let arguments = ["tree", "--offline", "--edges", "normal", "--prefix", "none", "--format", "{lib}"];
    let output = Command::new(env!("CARGO")).args(arguments).args(["--package", package]).output().expect("cargo runs");
    assert!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split_whitespace().next().unwrap_or_default().replace('_', "-")).collect()
}

/// The crates that are pure, each built from those before it.
const PURE: [&str; 8] = [
    "bash-commands",
    "tollgate-json",
    "tollgate-passport",
    "tollgate-core",
    "tollgate-abuse",
    "tollgate-config",
    "tollgate-recordings",
    "tollgate-hosts",
];

#[test]
fn what_decides_is_built_from_nothing_that_acts() {
    for package in PURE {
        let tree = crates_of(package);
        assert!(tree.contains(package), "this is not the tree of {package}: {tree:?}");
        let found: Vec<_> = IMPURE.iter().filter(|name| tree.contains(**name)).collect();
        assert!(found.is_empty(), "{package} depends on {found:?}; `cargo tree -p {package} -e normal -i NAME` says why");
    }
}

/// The test above would find such crates: the worker has them.
#[test]
fn the_worker_is_built_from_what_acts() {
    let worker = crates_of("tollgate");
    for name in ["rdkafka", "tokio", "prometheus"] {
        assert!(worker.contains(name), "{name} is not in {worker:?}");
    }
}
