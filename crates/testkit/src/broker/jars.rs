//! Provides the broker's jars, which Maven downloads once into a directory of its own, and names what must be installed for that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, bail, ensure};

const POM: &str = include_str!("pom.xml");
const JAVA_VERSION_MIN: u32 = 17;

/// Returns what this machine lacks to run the broker, in words for a person who can install it.
#[must_use]
pub fn lacking(cache: &Path) -> Option<String> {
    let mut lacks = Vec::new();
    match java_version() {
        Some(version) if version >= JAVA_VERSION_MIN => {}
        Some(version) => lacks.push(format!("java {JAVA_VERSION_MIN} or newer (this one is {version})")),
        None => lacks.push(format!("java {JAVA_VERSION_MIN} or newer")),
    }
    if !is_complete(cache) && Command::new("mvn").arg("-v").output().is_err() {
        lacks.push("mvn (Maven)".to_owned());
    }
    (!lacks.is_empty()).then(|| lacks.join(" and "))
}

/// Returns the class path of the broker; downloads the jars if they are not there yet.
pub(crate) fn class_path(cache: &Path) -> Result<String> {
    if let Some(lacks) = lacking(cache) {
        bail!("a broker needs {lacks}, which this machine does not have");
    }
    // Brokers of several threads may need the jars at once.
    static DOWNLOADS: Mutex<()> = Mutex::new(());
    let _one_at_a_time = DOWNLOADS.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_complete(cache) {
        download(cache).context("cannot download the broker's jars")?;
    }
    Ok(format!("{}/*", cache.display()))
}

/// Returns where the jars are kept: what `TOLLGATE_KAFKA_JARS` says, or else the user's cache directory.
///
/// # Errors
/// No variable names a directory.
pub fn default_cache() -> Result<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let in_cache = || Some(named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?.join("tollgate/kafka-jars"));
    named("TOLLGATE_KAFKA_JARS").or_else(in_cache).context("TOLLGATE_KAFKA_JARS should name a directory for the broker's jars")
}

/// Returns where tests and benchmarks keep the jars: beside cargo's directory for them, so that `cargo clean` removes the jars and no test
/// run does.
#[must_use]
pub fn test_cache(target_tmpdir: &Path) -> PathBuf {
    target_tmpdir.with_file_name("kafka-jars")
}

/// Returns whether the jars are there. The POM they were downloaded for lies beside them, so that a change of any version makes them stale.
fn is_complete(cache: &Path) -> bool {
    fs::read_to_string(cache.join("pom.xml")).is_ok_and(|pom| pom == POM)
}

/// Downloads into a directory that gets the cache's name only when it is complete, as a download may be killed.
fn download(cache: &Path) -> Result<()> {
    let unfinished = cache.with_extension(format!("unfinished-{}", std::process::id()));
    fs::create_dir_all(&unfinished)?;
    let downloaded = download_into(&unfinished).and_then(|()| {
        // Brokers run with the jars of another process that was quicker.
        if is_complete(cache) {
            return Ok(fs::remove_dir_all(&unfinished)?);
        }
        if cache.exists() {
            fs::remove_dir_all(cache)?;
        }
        Ok(fs::rename(&unfinished, cache)?)
    });
    if downloaded.is_err() {
        // The error says what went wrong.
        let _removed = fs::remove_dir_all(&unfinished);
    }
    // Another process may have completed the directory meanwhile.
    if is_complete(cache) { Ok(()) } else { downloaded }
}

fn download_into(directory: &Path) -> Result<()> {
    fs::write(directory.join("pom.xml"), POM)?;
    let maven = Command::new("mvn")
        .args(["-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=."])
        .current_dir(directory)
        .output()
        .context("cannot run mvn")?;
    ensure!(maven.status.success(), "mvn: {}\n{}", maven.status, String::from_utf8_lossy(&maven.stdout));
    Ok(())
}

/// Returns the major version of `java`, whose `-version` says `openjdk version "17.0.15" 2025-04-15` among other things.
fn java_version() -> Option<u32> {
    let output = Command::new("java").arg("-version").output().ok()?;
    let text = String::from_utf8(output.stderr).ok()?;
    let (_, version) = text.split_once("version \"")?;
    // Java 8 called itself 1.8.
    version.trim_start_matches("1.").split(['.', '-', '+', '"']).next()?.parse().ok()
}
