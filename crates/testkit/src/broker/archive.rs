//! The JVM's options for brokers of tests: they start in half the time and with half the work, and get slower only under load.
//!
//! Most of a start is the loading of classes. A first broker writes those that it has loaded into an archive (class data sharing of the
//! JVM), from which later brokers map them. A JVM that an archive was not made for ignores the archive.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use super::{Broker, Setup};

/// Without the compiler of hot code and the threads of a collector for large heaps, since three such brokers share two cores with the tests.
const LIGHT: [&str; 4] = ["-Xms128m", "-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/// Returns the options, and makes the archive beside the jars if there is none yet.
pub(crate) fn quick_options(jars: &Path) -> Result<Vec<String>> {
    // Brokers of several threads may start at once.
    static ARCHIVES: Mutex<()> = Mutex::new(());
    let _one_at_a_time = ARCHIVES.lock().unwrap_or_else(PoisonError::into_inner);
    let archive = jars.join("classes.jsa");
    if !archive.exists() {
        // Another process may be doing the same.
        let unfinished = jars.join(format!("classes-{}.jsa", std::process::id()));
        let options = light(&format!("-XX:ArchiveClassesAtExit={}", unfinished.display()));
        Broker::start_with(jars, Setup { options, ..Setup::default() })?.stop()?;
        fs::rename(unfinished, &archive)?;
    }
    Ok(light(&format!("-XX:SharedArchiveFile={}", archive.display())))
}

fn light(option: &str) -> Vec<String> {
    LIGHT.into_iter().chain([option]).map(str::to_owned).collect()
}
