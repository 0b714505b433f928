//! A process under test whose lines on stderr are read while it runs.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use tollgate_testkit::eventually;

/// A running process. It is killed when the handle is dropped.
pub struct Process {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let said = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let into = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *into.lock().unwrap() += &(line + "\n");
            }
        });
        Self { child, said }
    }

    /// Returns everything that it has said on stderr.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until a line holds all of these, and returns the line.
    pub fn line(&self, parts: &[&str]) -> String {
        let is_wanted = |line: &&str| parts.iter().all(|part| line.contains(part));
        let found = eventually(|| {
            let said = self.said();
            said.lines().find(is_wanted).map(str::to_owned).with_context(|| format!("no line with {parts:?}:\n{said}"))
        });
        found.unwrap()
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) {
        let sent = Command::new("kill").arg("-INT").arg(self.child.id().to_string()).status().expect("kill is there");
        assert!(sent.success());
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> ExitStatus {
        let said = Arc::clone(&self.said);
        eventually(|| self.child.try_wait()?.with_context(|| format!("it did not end:\n{}", said.lock().unwrap()))).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}
