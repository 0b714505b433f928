//! Shows progress: a line that stays for every step, and on a terminal a bar that shows how far the step is.

use std::io::{IsTerminal, Write as _};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

const WIDTH: usize = 30;
const INTERVAL: Duration = Duration::from_millis(100);

/// Shows progress on stderr, with the time since the beginning.
#[derive(Debug)]
pub struct Progress {
    is_shown: bool,
    start: Instant,
    last: Mutex<Option<Instant>>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), start: Instant::now(), last: Mutex::default() }
    }
}

impl Progress {
    /// Shows a bar, unless that was done a moment ago.
    pub fn show(&self, label: &str, done: usize, of: usize) {
        if !self.is_shown {
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= INTERVAL) {
            *last = Some(Instant::now());
            // Progress is no data; a terminal that is gone is no failure.
            let _shown = write!(std::io::stderr(), "\r\x1b[K{}", bar(label, done, of));
        }
    }

    /// Writes a line that stays, on a terminal or not, behind the minutes and seconds that have passed.
    pub fn say(&self, text: &str) {
        self.clear();
        let _said = writeln!(std::io::stderr(), "{} {text}", clock(self.start.elapsed()));
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if self.is_shown {
            let _cleared = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Returns a time as minutes and seconds.
fn clock(elapsed: Duration) -> String {
    format!("{:>2}:{:02}", elapsed.as_secs() / 60, elapsed.as_secs() % 60)
}

fn bar(label: &str, done: usize, of: usize) -> String {
    let filled = (done * WIDTH).checked_div(of).unwrap_or_default().min(WIDTH);
    format!("{}{} {label}", "█".repeat(filled), "░".repeat(WIDTH - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_in_minutes_and_seconds() {
        assert_eq!([0, 65, 6_000].map(|seconds| clock(Duration::from_secs(seconds))), [" 0:00", " 1:05", "100:00"]);
    }

    #[test]
    fn a_bar_is_as_long_as_what_is_done() {
        assert_eq!(bar("x", 0, 0), format!("{} x", "░".repeat(30)));
        assert_eq!(bar("x", 1, 2), format!("{}{} x", "█".repeat(15), "░".repeat(15)));
        assert_eq!(bar("x", 5, 2), format!("{} x", "█".repeat(30)));
    }
}
