//! How far a capture is: a line on a terminal that is written over, and a sentence at the end.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::units::{bytes, count, seconds, stamp};

/// How often the line is written.
const INTERVAL: Duration = Duration::from_millis(500);

/// What was captured so far.
#[derive(Debug)]
pub(super) struct Progress {
    started: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
    /// How many offsets there are to go through; `None` if there is no end.
    total: Option<u64>,
    pub(super) records: u64,
    /// Bytes of lines.
    pub(super) bytes: u64,
    first_ms: Option<i64>,
    last_ms: Option<i64>,
}

impl Progress {
    pub(super) fn new(total: Option<u64>) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { started: Instant::now(), shown: None, is_terminal, total, records: 0, bytes: 0, first_ms: None, last_ms: None }
    }

    /// Notes a record.
    pub(super) fn note(&mut self, line_bytes: u64, timestamp_ms: Option<i64>) {
        self.records += 1;
        self.bytes += line_bytes;
        self.first_ms = self.first_ms.into_iter().chain(timestamp_ms).min();
        self.last_ms = self.last_ms.max(timestamp_ms);
    }

    /// Shows the line if it is time to. `left` is how many offsets there are still to go through.
    pub(super) fn show(&mut self, left: u64) {
        if !self.is_terminal || self.shown.is_some_and(|shown| shown.elapsed() < INTERVAL) {
            return;
        }
        self.shown = Some(Instant::now());
        let elapsed = self.started.elapsed().as_secs_f64().max(0.001);
        let mut line = format!("{} records, {}, {}/s", count(self.records as f64), bytes(self.bytes), count(self.records as f64 / elapsed));
        if let Some(total) = self.total.filter(|total| *total > 0) {
            let done = total.saturating_sub(left);
            line.push_str(&format!(", {} %", done * 100 / total));
            if done > 0 {
                line.push_str(&format!(", {} left", seconds(elapsed * left as f64 / done as f64)));
            }
        }
        // The line goes over the one before it. If nobody reads it, that is no failure.
        let _reader_gone = write!(std::io::stderr().lock(), "\r\x1b[K{line}");
    }

    /// Returns the sentence at the end.
    pub(super) fn summary(&self) -> String {
        if self.is_terminal && self.shown.is_some() {
            let _reader_gone = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
        let Self { records, started, .. } = self;
        let span = match (self.first_ms, self.last_ms) {
            (Some(first), Some(last)) => format!(", from {} to {}", stamp(first), stamp(last)),
            _ => String::new(),
        };
        format!("{records} records, {} of lines, in {}{span}", bytes(self.bytes), seconds(started.elapsed().as_secs_f64()))
    }
}
