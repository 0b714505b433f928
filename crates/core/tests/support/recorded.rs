//! Reads recorded runs of real agents. They belong to those who recorded them and are no part of the repository. Tests read them where they
//! are, and elsewhere report what they have not run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names their folder; without it they are looked for in `../shared/real`, seen from the top of the repository.
const VARIABLE: &str = "TOLLGATE_RECORDED_RUNS";

/// 189 runs of a customer service.
pub const TAU_AIRLINE: &str = "tau-airline.jsonl.gz";
/// 21 demonstrations of work on code.
pub const SWEAGENT_DEMOS: &str = "sweagent-demos.jsonl.gz";

/// Reads the events of a recording, a line each. The error says that it is not on this machine.
///
/// # Panics
/// Where [`VARIABLE`] names a folder that does not hold it, and where it cannot be unpacked.
pub fn events(name: &str) -> Result<Vec<String>, String> {
    let named = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty());
    let path = named.as_ref().map_or_else(|| top().join("../shared/real"), PathBuf::from).join(name);
    if !path.is_file() {
        assert!(named.is_none(), "{VARIABLE}: there is no {}", path.display());
        return Err(format!("there is no {}; {VARIABLE} may name the folder of recorded runs", path.display()));
    }
    // Every system that builds this has `gzip`.
    let unpacked = Command::new("gzip").arg("-dc").arg(&path).output().unwrap_or_else(|error| panic!("gzip: {error}"));
    assert!(unpacked.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&unpacked.stderr));
    let text = String::from_utf8(unpacked.stdout).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Ok(text.lines().map(str::to_owned).collect())
}

/// Returns the top of the repository, whichever package the test is of.
fn top() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).unwrap_or(package)
}
