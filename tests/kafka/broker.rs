//! The tests' broker: the one that `tollgate bench` starts, with settings of the tests' own and jars beside cargo's directories.

use std::path::{Path, PathBuf};

use anyhow::Result;
pub(crate) use tollgate_testkit::Broker;

/// Starts a broker on free ports and waits until it answers; `properties` are further lines of its `server.properties`.
pub(crate) fn start(properties: &[&str]) -> Result<Broker> {
    Broker::start(&jars(), &[include_str!("server.properties"), &properties.join("\n")].join("\n"))
}

/// What this machine lacks to run the broker, in words for whoever can install it.
pub(crate) fn lacking() -> Option<String> {
    tollgate_testkit::lacking(&jars())
}

/// `cargo clean` removes it, and no test run does.
fn jars() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("kafka-jars")
}
