//! Builds and runs what a checkout of this repository holds: the baselines, and the benchmarks that need no Kafka.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Absence, Subject};
use tollgate_testkit::ProcessGuard;

/// The baselines: the bare loop, and what a platform team would run instead.
pub const BASELINES: [&str; 3] = ["bare", "python", "kafka-streams"];
/// How many folders the baselines are below the root of a checkout.
const DEPTH: usize = 3;
/// The exit status of a `run.sh` for which this machine lacks something.
const LACKING: i32 = 69;
/// The exit status of a shell that does not find a command.
const NOT_FOUND: i32 = 127;

/// A checkout of this repository, whose baselines and benchmarks of the core can be built and run.
#[derive(Debug, Clone)]
pub struct Checkout {
    /// The folder of the baselines; it need not be there.
    baselines: PathBuf,
    /// The program that builds and runs the core's benchmarks.
    cargo: OsString,
}

impl Checkout {
    /// Returns the checkout that holds this folder of baselines. `CARGO` names another cargo than the one of the path.
    pub fn new(baselines: &Path) -> Self {
        let baselines = baselines.canonicalize().unwrap_or_else(|_| baselines.to_owned());
        Self { baselines, cargo: std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()) }
    }

    /// Replaces cargo with another program.
    #[cfg(test)]
    pub(super) fn with_cargo(self, cargo: &Path) -> Self {
        Self { cargo: cargo.into(), ..self }
    }

    /// Builds a baseline, so that it only has to be started.
    pub fn prepare_baseline(&self, name: &str, time_max: Duration) -> Result<Subject, Absence> {
        let script = self.baselines.join(name).join("run.sh");
        if !script.is_file() {
            let why = format!("there is no {}: run it in a checkout, or name the folder with --baselines", script.display());
            return Err(Absence::missing(name, &why));
        }
        let mut command = Command::new(&script);
        command.arg("--prepare");
        output(name, &command, time_max)?;
        // To write a quote inside quotes, a shell needs them closed, the quote added, and the quotes opened again.
        let quoted = format!("'{}'", script.display().to_string().replace('\'', r"'\''"));
        Ok(Subject::Baseline { name: name.to_owned(), command: format!("TOLLGATE_PREPARED=1; export TOLLGATE_PREPARED; exec {quoted}") })
    }

    /// Builds a benchmark of the core.
    pub fn prepare_bench(&self, name: &str, time_max: Duration) -> Result<(), Absence> {
        if name == "instructions" {
            output(name, Command::new("valgrind").arg("--version"), time_max)?;
        }
        output(name, self.bench(name)?.arg("--no-run"), time_max).map(drop)
    }

    /// Returns what a benchmark of the core prints as JSON.
    pub fn run_bench(&self, name: &str, time_max: Duration) -> Result<String, Absence> {
        output(name, self.bench(name)?.args(["--", name, "--json"]), time_max)
    }

    fn bench(&self, name: &str) -> Result<Command, Absence> {
        let manifest = self.baselines.ancestors().nth(DEPTH).map(|root| root.join("Cargo.toml")).filter(|manifest| manifest.is_file());
        let Some(manifest) = manifest else {
            let why = format!("{} is not in a checkout, whose benchmark `{name}` measures it", self.baselines.display());
            return Err(Absence::missing(name, &why));
        };
        let mut command = Command::new(&self.cargo);
        let package = if name == "fold" { "tollgate-abuse" } else { "tollgate-core" };
        command.args(["bench", "--quiet", "-p", package]);
        command.arg(format!("--manifest-path={}", manifest.display()));
        Ok(command)
    }
}

/// Runs a command to its end, and returns its output. It is killed if that takes too long.
fn output(part: &str, command: &Command, time_max: Duration) -> Result<String, Absence> {
    let run = || -> Result<_> {
        let mut guard = ProcessGuard::start()?;
        guard.run(command)?;
        let status = guard.wait(time_max);
        let text = fs::read(guard.log_path()).context("its output is lost")?;
        Ok((status, String::from_utf8_lossy(&text).into_owned()))
    };
    let (status, text) = run().map_err(|error| Absence::failed(part, &format!("{error:#}")))?;
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it does not say why");
    match status {
        Ok(status) if status.success() => Ok(text),
        Ok(status) if status.code() == Some(LACKING) => Err(Absence::missing(part, last)),
        Ok(status) if status.code() == Some(NOT_FOUND) => {
            Err(Absence::missing(part, &format!("{} is not installed", command.get_program().to_string_lossy())))
        }
        Ok(status) => {
            // The first error is the cause; compilers and cargo write more behind it.
            let error = text.lines().map(str::trim).find(|line| line.starts_with("error")).unwrap_or(last);
            Err(Absence::failed(part, &format!("{}: {status}: {error}", shown(command))))
        }
        Err(_) => Err(Absence::failed(part, &format!("{} takes longer than {:.0} s", shown(command), time_max.as_secs_f64()))),
    }
}

/// Returns the command's name and its first arguments, as far as a person needs them.
fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments = command.get_args().filter(|argument| !argument.to_string_lossy().contains('/'));
    arguments.fold(name, |shown, argument| format!("{shown} {}", argument.to_string_lossy()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const TIME_MAX: Duration = Duration::from_secs(120);

    /// Returns a checkout whose baseline `bare` and whose cargo are these shell scripts.
    pub(crate) fn checkout(bare: &str, cargo: &str) -> (tempfile::TempDir, Checkout) {
        let root = tempfile::tempdir().unwrap();
        let baselines = root.path().join("crates/bench/base'lines");
        fs::create_dir_all(baselines.join("bare")).unwrap();
        fs::write(root.path().join("Cargo.toml"), "").unwrap();
        for (path, script) in [(baselines.join("bare/run.sh"), bare), (root.path().join("cargo"), cargo)] {
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let checkout = Checkout::new(&baselines).with_cargo(&root.path().join("cargo"));
        (root, checkout)
    }

    #[test]
    fn a_baseline_is_prepared_and_started_by_one_script() {
        let (root, checkout) = checkout(r#"echo "$1$TOLLGATE_PREPARED" >"$(dirname "$0")/argument""#, "");
        let Subject::Baseline { name, command } = checkout.prepare_baseline("bare", TIME_MAX).unwrap() else { panic!("no baseline") };
        let argument = root.path().join("crates/bench/base'lines/bare/argument");
        assert_eq!((name.as_str(), fs::read_to_string(&argument).unwrap().trim()), ("bare", "--prepare"));
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
        assert_eq!(fs::read_to_string(&argument).unwrap().trim(), "1");
    }

    #[test]
    fn what_a_machine_lacks_is_told_apart_from_what_fails() {
        let prepare = |bare, time_max| checkout(bare, "").1.prepare_baseline("bare", time_max).unwrap_err();
        assert_eq!(
            prepare("echo noise; echo 'java is not installed' >&2; exit 69", TIME_MAX),
            Absence::missing("bare", "java is not installed")
        );
        let failed = prepare("echo 'no such class' >&2; exit 1", TIME_MAX);
        assert!(failed.failed && failed.why == "run.sh --prepare: exit status: 1: no such class", "{failed:?}");
        let slow = prepare("sleep 60", Duration::from_millis(300));
        assert!(slow.failed && slow.why.contains("takes longer"), "{slow:?}");
        let absent = checkout("", "").1.prepare_baseline("python", TIME_MAX).unwrap_err();
        assert!(!absent.failed && absent.why.contains("--baselines"), "{absent:?}");
    }

    #[test]
    fn benchmarks_of_the_core_need_a_checkout_and_a_cargo() {
        let (root, checkout) = checkout("", r#"echo "$@""#);
        checkout.prepare_bench("decision", TIME_MAX).unwrap();
        let printed = checkout.run_bench("decision", TIME_MAX).unwrap();
        let (begin, end) = ("bench --quiet -p tollgate-core --manifest-path=/", "-- decision --json\n");
        assert!(printed.starts_with(begin) && printed.ends_with(end), "{printed}");
        let gone = checkout.clone().with_cargo(Path::new("no-such-program")).prepare_bench("decision", TIME_MAX).unwrap_err();
        assert!(!gone.failed && gone.why.contains("no-such-program"), "{gone:?}");
        fs::remove_file(root.path().join("Cargo.toml")).unwrap();
        assert!(!checkout.prepare_bench("decision", TIME_MAX).unwrap_err().failed);
    }
}
