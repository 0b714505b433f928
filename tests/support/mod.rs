//! Shared by several test binaries: running the real binary on an input, and checks of its output.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Asserts that every field of `expected` stands in `actual`; null stands for a field that is left out, and lists are compared whole.
pub fn assert_has(name: &str, actual: &Value, expected: &Value) {
    for (field, expected) in expected.as_object().expect("an object") {
        let actual_field = actual.get(field).unwrap_or(&Value::Null);
        if expected.is_object() && actual_field.is_object() {
            assert_has(&format!("{name}, {field}"), actual_field, expected);
        } else {
            assert_eq!(actual_field, expected, "{name}: {field} of {actual}");
        }
    }
}

/// Checks every case, so that one run names all that fail.
pub fn check_each<T>(cases: impl IntoIterator<Item = T>, name: impl Fn(&T) -> String, check: impl Fn(&T)) {
    let (mut checked, mut failed) = (0, Vec::new());
    for case in cases {
        checked += 1;
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&case))).is_err() {
            failed.push(name(&case));
        }
    }
    assert!(checked > 0, "no case was checked");
    assert!(failed.is_empty(), "{} of {checked} cases failed:\n{}", failed.len(), failed.join("\n"));
}

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

/// Writes a file with this text, which is gone when the handle is dropped.
pub fn temporary(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), text).expect("it can be written");
    file
}
