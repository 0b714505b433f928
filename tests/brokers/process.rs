//! A process under test whose lines on stderr are read while it runs.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::Context as _;
use tollgate_testkit::eventually;

/// A running process. It is killed when the handle is dropped, and tells what it said if the case fails.
pub struct Process {
    child: Child,
    said: Arc<Mutex<String>>,
    /// Ends when nothing more can be said.
    reader: JoinHandle<()>,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let said = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let into = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *into.lock().unwrap() += &(line + "\n");
            }
        });
        Self { child, said, reader }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns everything that it has said on stderr.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until a line holds all of these, and returns the line.
    pub fn line(&self, parts: &[&str]) -> String {
        let is_wanted = |line: &&str| parts.iter().all(|part| line.contains(part));
        let found = eventually(|| {
            let is_over = self.reader.is_finished();
            let said = self.said();
            assert!(!is_over || said.lines().any(|line| is_wanted(&line)), "it ended without a line with {parts:?}:\n{said}");
            said.lines().find(is_wanted).map(str::to_owned).with_context(|| format!("no line with {parts:?}:\n{said}"))
        });
        found.unwrap()
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) {
        let sent = Command::new("kill").arg("-INT").arg(self.id().to_string()).status().expect("kill is there");
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
        let ended = self.child.try_wait();
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
        if std::thread::panicking() {
            eprintln!("it had ended: {ended:?}; it said:\n{}", self.said());
        }
    }
}
