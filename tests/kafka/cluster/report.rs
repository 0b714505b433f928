//! The table: a row for each kind of fault, as Markdown and as lines of JSON.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::check::Checked;
use super::waits::Waits;

/// The result of one run.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) fault: String,
    pub(crate) seed: u64,
    pub(crate) events: usize,
    pub(crate) gate: Waits,
    /// Until the broker had the verdict: what remains is the reader's own wait.
    pub(crate) appended: Waits,
    pub(crate) plain: Waits,
    /// From an event's being sent to its acknowledgement: what a publication to the same brokers takes.
    pub(crate) sender: Waits,
    pub(crate) checked: Checked,
    /// Acknowledged events that the plain group never read.
    pub(crate) plain_unread: usize,
    /// What workers should not have done.
    pub(crate) findings: Vec<String>,
}

impl Row {
    pub(crate) fn ratio(&self) -> f64 {
        self.gate.longest / self.plain.longest.max(0.001)
    }

    /// Returns whether anything is wrong with what was decided, or with a worker.
    pub(crate) fn is_wrong(&self) -> bool {
        let Checked { unacknowledged, missing, different, .. } = self.checked;
        unacknowledged + missing + different > 0 || !self.findings.is_empty()
    }

    fn json(&self) -> Value {
        let waits = |waits: &Waits| {
            let round = |seconds: f64| (seconds * 1e3).round() / 1e3;
            json!({"longest": round(waits.longest), "p999": round(waits.p999), "p99": round(waits.p99), "median": round(waits.median), "over_2_s": waits.over_two_seconds})
        };
        json!({
            "fault": self.fault, "seed": self.seed, "events": self.events, "gate": waits(&self.gate), "gate_appended": waits(&self.appended),
            "plain": waits(&self.plain), "sender": waits(&self.sender), "ratio": (self.ratio() * 100.0).round() / 100.0, "missing": self.checked.missing,
            "different": self.checked.different, "copies": self.checked.copies, "unacknowledged": self.checked.unacknowledged,
            "plain_unread": self.plain_unread, "findings": self.findings.len(),
        })
    }
}

/// Adds a row to a file of JSON lines.
pub(crate) fn append(row: &Row, path: &Path) -> Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    Ok(writeln!(file, "{}", row.json())?)
}

/// Returns the rows as a table in Markdown: of several runs of a fault, the longest waits.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| fault | longest wait, gate (s) | until appended | plain group (s) | ratio | sender (s) | > 2 s, gate | > 2 s, plain | runs | events | missing | different | findings |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut names: Vec<&str> = rows.iter().map(|row| row.fault.as_str()).collect();
    names.dedup();
    for name in names {
        let runs: Vec<_> = rows.iter().filter(|row| row.fault == name).collect();
        let longest = |of: fn(&Row) -> f64| runs.iter().map(|row| of(row)).fold(0.0, f64::max);
        let sum = |of: fn(&Row) -> usize| runs.iter().map(|row| of(row)).sum::<usize>();
        let (gate, plain) = (longest(|row| row.gate.longest), longest(|row| row.plain.longest));
        // Writing to memory does not fail.
        let _written = writeln!(
            out,
            "| {name} | {gate:.1} | {:.1} | {plain:.1} | {:.2} | {:.1} | {} | {} | {} | {} | {} | {} | {} |",
            longest(|row| row.appended.longest),
            gate / plain.max(0.001),
            longest(|row| row.sender.longest),
            sum(|row| row.gate.over_two_seconds),
            sum(|row| row.plain.over_two_seconds),
            runs.len(),
            sum(|row| row.events),
            sum(|row| row.checked.missing + row.checked.unacknowledged),
            sum(|row| row.checked.different),
            sum(|row| row.findings.len()),
        );
    }
    out
}
