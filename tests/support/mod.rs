//! Shared by the modules: running the real binary on an input, and checks of its output.

pub use tollgate_fixtures::checks::{assert_has, check_each};

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;
use tollgate_fixtures::cases::jsonl;

/// Returns the real binary's command, in an environment without the machine's own settings.
pub fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let ours = std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("TOLLGATE"));
    for name in ours {
        command.env_remove(name);
    }
    command
}

/// The result of a command that has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub exit: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("stdout is JSONL")).collect()
    }
}

/// Checks that a text contains these parts.
pub fn assert_says(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
}

/// Runs a command to its end with this on its stdin.
pub fn run(command: &mut Command, input: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        // A command may end without reading its stdin.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().expect("it ends")
    });
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { exit: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs a command whose stdout has lost its reader before the first byte, and returns its exit code and what it says on stderr.
pub fn run_unread(command: &mut Command) -> (Option<i32>, String) {
    let (reader, stdout) = std::io::pipe().expect("a pipe");
    drop(reader);
    let child = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn().expect("it starts");
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

/// Writes a file with this text, which is gone when the handle is dropped.
pub fn temporary(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), text).expect("it can be written");
    file
}

/// Runs a command that runs test files on one file with this text.
pub fn test(command: &[&str], text: &str, arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a_test.yaml"), text).unwrap();
    run(tollgate().args(command).arg("a_test.yaml").args(arguments).current_dir(folder.path()), b"")
}

/// Checks that the examples of a page pass, so many at least, and that the page shows one of them. Returns what they reach.
pub fn check_examples(command: &[&str], examples: &str, least: usize, (page, shown): (&str, &str)) -> Value {
    let junit = tempfile::NamedTempFile::new().unwrap();
    let ran = run(tollgate().args(command).args([examples, "--coverage-min", "100%", "--json", "--junit"]).arg(junit.path()), b"");
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    let (cases, mut coverage): (Vec<_>, Vec<_>) = ran.json_lines().into_iter().partition(|line| line.get("case").is_some());
    assert!(cases.len() >= least && cases.iter().all(|case| case["passed"] == true), "{cases:?}");
    let xml = std::fs::read_to_string(junit.path()).unwrap();
    assert!(xml.contains(&format!("tests=\"{}\" failures=\"0\"", cases.len())) && !xml.contains("<failure"), "{xml}");
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let file = read(&format!("{examples}/{shown}"));
    assert!(read(page).contains(&format!("```yaml\n{file}```")), "{page} shows another text than {examples}/{shown}");
    assert_eq!((coverage.len(), &coverage[0]["percent"]), (1, &Value::from(100)));
    coverage.remove(0)
}

/// Checks that a command which runs test files refuses those with mistakes, and says of each what its line says.
pub fn check_mistakes(of: &str, test: impl Fn(&str) -> Ran) {
    let cases = jsonl("tests/test_files_with_mistakes.jsonl").into_iter().filter(|case| case["of"] == of);
    let check = |case: &Value| {
        let (ran, says) = (test(case["file"].as_str().unwrap()), case["says"].as_str().unwrap());
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(says), "{says}\n---\n{}", ran.stderr);
    };
    check_each(cases, Value::to_string, check);
}
