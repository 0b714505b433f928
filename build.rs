//! Tells the program which revision of the sources it is built from: `TOLLGATE_REVISION` if that is set, as images do, or else git's. And
//! for which target, and with which compiler.
//!
//! It runs again when the revision changes, and not otherwise. Without git, or where the sources lie in the repository of something else,
//! the revision is `unknown`.

use std::path::Path;
use std::process::Command;

const VARIABLE: &str = "TOLLGATE_REVISION";
const UNKNOWN: &str = "unknown";

fn main() {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rerun-if-changed=build.rs");
    let given = std::env::var(VARIABLE).ok().map(|given| given.trim().to_owned()).filter(|given| is_revision(given));
    let revision = given.or_else(of_git).unwrap_or_else(|| UNKNOWN.to_owned());
    println!("cargo::rustc-env={VARIABLE}={revision}");
    let target = std::env::var("TARGET").unwrap_or_else(|_| UNKNOWN.to_owned());
    println!("cargo::rustc-env=TOLLGATE_TARGET={target}");
    println!("cargo::rustc-env=TOLLGATE_RUSTC={}", compiler().unwrap_or_else(|| UNKNOWN.to_owned()));
}

/// Returns the compiler's name and version.
fn compiler() -> Option<String> {
    let output = Command::new(std::env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}

/// Returns whether a text can be a revision. It becomes the label of a metric.
fn is_revision(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/'))
}

/// Returns the revision of the repository whose top these sources are.
fn of_git() -> Option<String> {
    let top = std::fs::canonicalize(git(&["rev-parse", "--show-toplevel"])?).ok()?;
    let ours = std::fs::canonicalize(std::env::var_os("CARGO_MANIFEST_DIR")?).ok()?;
    if top != ours {
        return None;
    }
    // HEAD names a branch, whose file changes with each commit. The log of HEAD does so where the branch has no file yet.
    let branch = git(&["symbolic-ref", "-q", "HEAD"]);
    for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        // Cargo runs the script every time if a file that is named here does not exist.
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"]).filter(|revision| is_revision(revision))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
