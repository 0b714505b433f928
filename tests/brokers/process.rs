//! A process under test whose lines on stderr are read while it runs.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a line or an end may take. The tests are about what is said, and machines are slow at times.
pub const TIME_MAX: Duration = Duration::from_secs(120);

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
        let deadline = Instant::now() + TIME_MAX;
        loop {
            let said = self.said();
            if let Some(line) = said.lines().find(|line| parts.iter().all(|part| line.contains(part))) {
                return line.to_owned();
            }
            assert!(Instant::now() < deadline, "no line with {parts:?}:\n{said}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) {
        let sent = Command::new("kill").arg("-INT").arg(self.child.id().to_string()).status().expect("kill is there");
        assert!(sent.success());
    }

    /// Waits until it has ended.
    pub fn wait(&mut self, time_max: Duration) -> ExitStatus {
        let deadline = Instant::now() + time_max;
        loop {
            if let Some(status) = self.child.try_wait().expect("its status is known") {
                return status;
            }
            assert!(Instant::now() < deadline, "it did not end:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}
