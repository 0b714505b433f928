//! Chooses the `tollgate` that the workers run: the one that is named, the one that cargo builds from this checkout, or one that is found.
//!
//! Under `cargo run` the worker is built every time, which takes a moment if nothing has changed. Cargo itself builds only the benchmark,
//! and nobody would notice that a worker older than its sources is measured.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Progress;

const NAME: &str = "tollgate";
/// This package's folder when it was compiled, which `cargo run` names in the environment of what it runs.
const MANIFEST_DIR: &str = env!("CARGO_MANIFEST_DIR");

/// Returns the `tollgate` binary to measure: `named`, or the one that cargo builds if cargo has started this program, or the one beside
/// this program, or the one of `PATH`.
pub(super) fn resolve(named: Option<&Path>, progress: &Progress) -> Result<PathBuf> {
    if let Some(path) = named {
        ensure!(path.is_file(), "--tollgate: there is no file {}; build it with `cargo build --release`", path.display());
        return Ok(path.canonicalize()?);
    }
    let this = env::current_exe().context("this program does not know where it is; name the worker with --tollgate")?;
    if env::var_os("CARGO").is_some() && env::var_os("CARGO_MANIFEST_DIR").is_some_and(|folder| folder == MANIFEST_DIR) {
        progress.say("building the worker");
        return build(&this);
    }
    find(&this, env::var_os("PATH"))
}

/// Builds the `tollgate` binary of this checkout as `beside` was built, a program in one of cargo's folders of a profile, and returns where
/// it is.
fn build(beside: &Path) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.args(["build", "--package=tollgate", "--bin=tollgate", "--message-format=json-render-diagnostics"]);
    command.arg(format!("--profile={}", profile(beside)?)).arg(format!("--manifest-path={MANIFEST_DIR}/Cargo.toml"));
    command.args(features());
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("{} cannot be run", cargo.display()))?;
    ensure!(output.status.success(), "the worker cannot be built; name one that is built already with --tollgate PATH");
    built(&output.stdout).context("cargo does not say where it has put the worker; name it with --tollgate PATH")
}

/// Returns the profile that a program in cargo's target directory was built with: the name of its folder, where tests are one folder
/// deeper.
fn profile(program: &Path) -> Result<String> {
    let folders = program.ancestors().skip(1).filter_map(|folder| folder.file_name()?.to_str());
    let folder = folders.into_iter().find(|name| *name != "deps").with_context(|| format!("{} has no folder", program.display()))?;
    Ok(if folder == "debug" { "dev" } else { folder }.to_owned())
}

/// Returns cargo's options for the features that this program was built with. By default there are none: then it is the binary that `cargo
/// build` makes.
fn features() -> Vec<String> {
    if cfg!(feature = "default") {
        return Vec::new();
    }
    let system = cfg!(feature = "openssl-system").then(|| "--features=openssl-system".to_owned());
    let vendored = cfg!(feature = "openssl-vendored").then(|| "--features=openssl-vendored".to_owned());
    ["--no-default-features".to_owned()].into_iter().chain(system).chain(vendored).collect()
}

/// Returns where the worker is by cargo's messages, one JSON object a line.
fn built(messages: &[u8]) -> Option<PathBuf> {
    let messages = messages.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut executables = messages.filter(|message| message.pointer("/target/name").is_some_and(|name| name == NAME));
    executables.find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
}

/// Returns a worker beside this program, or else in a folder of `PATH`.
fn find(this: &Path, path: Option<OsString>) -> Result<PathBuf> {
    let in_path = path.iter().flat_map(env::split_paths).map(|folder| folder.join(NAME));
    let mut candidates = [this.with_file_name(NAME)].into_iter().chain(in_path);
    candidates.find(|candidate| candidate.is_file()).with_context(|| {
        format!(
            "there is no `tollgate` beside {} and none in PATH: build it with `cargo build --release` in a \
             checkout, or name it with --tollgate PATH",
            this.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_is_beside_the_program_or_in_the_path() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let this = here.path().join("tollgate-bench");
        let path = Some(env::join_paths([Path::new("/nowhere"), there.path()]).unwrap());
        let error = find(&this, path.clone()).unwrap_err().to_string();
        assert!(error.contains("cargo build --release") && error.contains("--tollgate PATH"), "{error}");
        std::fs::write(there.path().join(NAME), "").unwrap();
        assert_eq!(find(&this, path.clone()).unwrap(), there.path().join(NAME));
        std::fs::write(here.path().join(NAME), "").unwrap();
        assert_eq!(find(&this, path).unwrap(), here.path().join(NAME));
    }

    #[test]
    fn a_worker_that_is_named_is_there() {
        let error = resolve(Some(Path::new("/no/such/file")), &Progress::default()).unwrap_err().to_string();
        assert!(error.starts_with("--tollgate: there is no file /no/such/file; build it"), "{error}");
    }

    #[test]
    fn the_worker_is_built_as_this_program_was() {
        let of = |program: &str| profile(Path::new(program)).unwrap();
        assert_eq!(of("/x/target/debug/tollgate-bench"), "dev");
        assert_eq!(of("/x/target/release/tollgate-bench"), "release");
        assert_eq!(of("/x/target/small/deps/moves-0123"), "small");
        assert!(profile(Path::new("/")).is_err());
    }

    #[test]
    fn cargo_says_where_the_worker_is() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"serde"},"executable":null}"#,
            "\n\n",
            r#"{"reason":"compiler-artifact","target":{"name":"tollgate","kind":["lib"]},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"tollgate","kind":["bin"]},"executable":"/x/target/debug/tollgate"}"#,
            "\n",
        );
        assert_eq!(built(messages.as_bytes()), Some(PathBuf::from("/x/target/debug/tollgate")));
        assert_eq!(built(b"{}\n"), None);
    }
}
