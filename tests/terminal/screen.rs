//! A pseudo-terminal with a process on it, and the screen that it shows.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::{Context as _, ensure};
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use tollgate_testkit::eventually;

const UPDATE: &str = "TOLLGATE_UPDATE_FIXTURES";

/// A process on a terminal. It ends with this value.
pub struct Terminal {
    child: Child,
    pty: Arc<Pty>,
    parser: Arc<Mutex<vt100::Parser>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// Runs `tollgate` with these arguments and variables on a terminal of this size, in an environment without the machine's own settings.
    pub fn start(arguments: &[&str], (columns, rows): (u16, u16), variables: &[(&str, &str)]) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate")).args(arguments).env_clear();
        for name in ["PATH", "HOME", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command = command.env(name, value);
            }
        }
        let child = command.env("TERM", "xterm-256color").envs(variables.iter().copied()).spawn(pts).unwrap();
        let parser = Arc::new(Mutex::new(vt100::Parser::new(NonZeroU16::new(rows).unwrap(), NonZeroU16::new(columns).unwrap(), 1_000)));
        let pty = Arc::new(pty);
        let (reading, screen) = (Arc::clone(&pty), Arc::clone(&parser));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // It fails once nobody has the other end any more.
            while let Ok(count @ 1..) = (&*reading).read(&mut bytes) {
                screen.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { child, pty, parser, reader }
    }

    /// Looks at the screen.
    pub fn look<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.parser.lock().unwrap().screen())
    }

    /// Returns the screen's lines.
    pub fn text(&self) -> String {
        self.look(vt100::Screen::contents)
    }

    /// Waits until the screen shows this, and returns its lines.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |shown| shown.contains(text))
    }

    /// Waits until the screen is as it should be, and returns its lines.
    pub fn wait_until(&self, what: &str, is_as_it_should_be: impl Fn(&str) -> bool) -> String {
        let found = eventually(|| {
            let shown = self.text();
            ensure!(is_as_it_should_be(&shown), "the screen never showed {what}:\n{shown}");
            Ok(shown)
        });
        found.unwrap()
    }

    /// Types this.
    pub fn type_in(&self, keys: &[u8]) {
        (&*self.pty).write_all(keys).unwrap();
    }

    /// Waits until the process has ended by itself and the screen shows all that it wrote.
    pub fn wait(&mut self) -> ExitStatus {
        let ended = eventually(|| self.child.try_wait()?.filter(|_| self.reader.is_finished()).context("it does not end"));
        ended.unwrap_or_else(|error| panic!("{error}:\n{}", self.text()))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Compares a screen with the snapshot of that name.
pub fn assert_snapshot(name: &str, screen: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/terminal/snapshots/{name}.txt"));
    let screen = masked(screen);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &screen).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(screen == expected, "{} is not what is shown now ({UPDATE}=1 writes it anew):\n{screen}", path.display());
}

/// Returns the lines with what differs from run to run replaced: ports, times of day and waits.
fn masked(screen: &str) -> String {
    let mut lines = String::new();
    for line in screen.lines() {
        lines.push_str(mask_wait(&mask_clock(&mask_ports(line))).trim_end());
        lines.push('\n');
    }
    lines
}

fn mask_ports(line: &str) -> String {
    let mut parts = line.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "127.0.0.1:PORT" + part.trim_start_matches(|digit: char| digit.is_ascii_digit()))
}

fn mask_clock(line: &str) -> String {
    let is_clock = line.len() >= 8
        && line.bytes().take(8).enumerate().all(|(at, byte)| if at % 3 == 2 { byte == b':' } else { byte.is_ascii_digit() });
    if is_clock { format!("HH:MM:SS{}", &line[8..]) } else { line.to_owned() }
}

/// A wait stands at the end of a line, or before its message.
fn mask_wait(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_number = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    for at in 1..words.len() {
        if matches!(words[at], "ms" | "s") && is_number(words[at - 1]) {
            let (before, behind) = (words[..at - 1].join(" "), words[at + 1..].join(" "));
            return format!("{} WAIT {behind}", before.trim_end());
        }
    }
    line.to_owned()
}

#[test]
fn what_differs_from_run_to_run_is_masked() {
    let shown = "on 127.0.0.1:40001, and 127.0.0.1:9092\n14:03:07  ✓ allow  t1       3.2 ms  a message of 2 s\n14:03  x\n";
    assert_eq!(masked(shown), "on 127.0.0.1:PORT, and 127.0.0.1:PORT\nHH:MM:SS  ✓ allow  t1 WAIT  a message of 2 s\n14:03  x\n");
}
