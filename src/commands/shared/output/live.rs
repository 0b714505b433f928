//! The line on a terminal that says how far a long command is.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use super::count;

/// How often the line is written.
const INTERVAL: Duration = Duration::from_millis(500);

/// A line on stderr that is written over, on a terminal only. It goes when this is dropped.
#[derive(Debug)]
pub(crate) struct LiveLine {
    started: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
}

impl LiveLine {
    /// Returns what shows how many lines were read. The line goes when it is dropped.
    pub(crate) fn lines() -> Box<dyn FnMut(u64)> {
        let mut line = Self { started: Instant::now(), shown: None, is_terminal: std::io::stderr().is_terminal() };
        Box::new(move |lines| line.show(lines))
    }

    /// Shows how many lines were read, if it is time to.
    fn show(&mut self, lines: u64) {
        let last = self.shown.unwrap_or(self.started);
        if !self.is_terminal || last.elapsed() < INTERVAL {
            return;
        }
        self.shown = Some(Instant::now());
        let rate = lines as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        // If nobody reads it, that is no failure.
        let _reader_gone = write!(std::io::stderr().lock(), "\r\x1b[K{lines} lines, {}/s", count(rate));
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _reader_gone = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}
