//! The broker's jars, which Maven downloads once into the target directory, and what must be installed for that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

const POM: &str = include_str!("pom.xml");
const JAVA_VERSION_MIN: u32 = 17;

/// What this machine lacks to run the broker, in words for whoever can install it.
pub(crate) fn lacking() -> Option<String> {
    let mut lacks = Vec::new();
    match java_version() {
        Some(version) if version >= JAVA_VERSION_MIN => {}
        Some(version) => lacks.push(format!("java {JAVA_VERSION_MIN} or newer (this one is {version})")),
        None => lacks.push(format!("java {JAVA_VERSION_MIN} or newer")),
    }
    if !is_complete(&cache()) && Command::new("mvn").arg("-v").output().is_err() {
        lacks.push("mvn (Maven)".to_owned());
    }
    (!lacks.is_empty()).then(|| lacks.join(" and "))
}

/// The class path of the broker; the jars are downloaded if they are not there yet.
pub(crate) fn class_path() -> Result<String> {
    let cache = cache();
    if !is_complete(&cache) {
        download(&cache).context("cannot download the broker's jars")?;
    }
    Ok(format!("{}/*", cache.display()))
}

/// Beside cargo's own directories: `cargo clean` removes it, and no test run does.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("kafka-jars")
}

/// The POM that the jars were downloaded for lies beside them, so a change of any version makes the cache stale.
fn is_complete(cache: &Path) -> bool {
    fs::read_to_string(cache.join("pom.xml")).is_ok_and(|pom| pom == POM)
}

/// Downloads into a directory that gets the cache's name only when it is complete, as a download may be killed.
fn download(cache: &Path) -> Result<()> {
    let parent = cache.parent().context("the cache has no parent")?;
    let unfinished = tempfile::Builder::new().prefix("kafka-jars.").tempdir_in(parent)?;
    fs::write(unfinished.path().join("pom.xml"), POM)?;
    let maven = Command::new("mvn")
        .args(["-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=."])
        .current_dir(unfinished.path())
        .output()
        .context("cannot run mvn")?;
    ensure!(maven.status.success(), "mvn: {}\n{}", maven.status, String::from_utf8_lossy(&maven.stdout));
    if cache.exists() {
        fs::remove_dir_all(cache)?;
    }
    fs::rename(unfinished.keep(), cache)?;
    Ok(())
}

/// The major version of `java`, whose `-version` says `openjdk version "17.0.15" 2025-04-15` among other things.
fn java_version() -> Option<u32> {
    let output = Command::new("java").arg("-version").output().ok()?;
    let text = String::from_utf8(output.stderr).ok()?;
    let (_, version) = text.split_once("version \"")?;
    // Java 8 called itself 1.8.
    version.trim_start_matches("1.").split(['.', '-', '+', '"']).next()?.parse().ok()
}
