//! What follows from the signals of decided events: it is written, and whom a rule suspends is suspended from the next event on.

use std::fmt::{self, Debug, Formatter};
use std::io::{self, Write};
use std::sync::Arc;

use tollgate_abuse::Folded;
use tollgate_core::decide::controls::Controls;
use tollgate_core::event::record::Record;

use crate::{CaptureWriter, Follower, Uncounted, write_envelope};

/// Where signals, alerts and controls go.
pub struct Sinks {
    alerts: Option<Box<dyn Write>>,
    controls: Option<Box<dyn Write>>,
    signals: Option<CaptureWriter>,
    line: Vec<u8>,
    uncounted: Uncounted,
}

impl Debug for Sinks {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sinks").finish_non_exhaustive()
    }
}

impl Sinks {
    /// Returns the outputs of alerts, controls and signals, of which any may be left out.
    #[must_use]
    pub fn new(alerts: Option<Box<dyn Write>>, controls: Option<Box<dyn Write>>, signals: Option<CaptureWriter>) -> Self {
        Self { alerts, controls, signals, line: Vec::new(), uncounted: Uncounted::default() }
    }

    /// Writes what follows from a record of the signals topic: controls before the alerts that report them.
    pub(super) fn write(&mut self, folded: &Folded) -> io::Result<()> {
        let Self { alerts, controls, line, uncounted, .. } = self;
        uncounted.add(folded);
        for control in &folded.controls {
            write_line(controls.as_mut(), line, &control.key, control.value.as_deref())?;
        }
        folded.alerts.iter().try_for_each(|alert| write_line(alerts.as_mut(), line, &alert.key, Some(&alert.value)))
    }

    /// Writes what is left, and returns a sentence for everything that was not counted.
    pub(super) fn finish(mut self) -> io::Result<Vec<String>> {
        for out in [self.alerts.as_mut(), self.controls.as_mut()].into_iter().flatten() {
            out.flush()?;
        }
        self.signals.map_or(Ok(()), |signals| signals.finish().map(drop).map_err(named))?;
        Ok(self.uncounted.sentences().collect())
    }
}

/// Names the option of an error. The error of a reader of stdout that has gone stays, since it decides the exit code.
fn named(error: io::Error) -> io::Error {
    let text = || format!("--signals-out: cannot be written to its end, and holds a part: {error}");
    if error.kind() == io::ErrorKind::BrokenPipe { error } else { io::Error::new(error.kind(), text()) }
}

/// Writes a record as a line, `{"key": "…", "value": {…} or null}`.
fn write_line(out: Option<&mut Box<dyn Write>>, line: &mut Vec<u8>, key: &str, value: Option<&[u8]>) -> io::Result<()> {
    let Some(out) = out else { return Ok(()) };
    line.clear();
    line.extend_from_slice(br#"{"key":"#);
    serde_json::to_writer(&mut *line, key)?;
    line.extend_from_slice(br#","value":"#);
    line.extend_from_slice(value.unwrap_or(b"null"));
    line.extend_from_slice(b"}\n");
    out.write_all(line)
}

/// The follower of an evaluation: it writes what follows from signals, and puts controls in force for the next event.
#[derive(Debug)]
pub(super) struct InForce {
    pub(super) sinks: Sinks,
    pub(super) controls: Arc<Controls>,
}

impl Follower for InForce {
    fn follow(&mut self, record: &Record<'_>, folded: Folded) -> anyhow::Result<()> {
        if let Some(signals) = &mut self.sinks.signals {
            signals.append(|out| write_envelope(record, false, out)).map_err(named)?;
        }
        for control in &folded.controls {
            let applied = self.controls.apply(Some(control.key.as_bytes()), control.value.as_deref());
            applied.map_err(|rejection| anyhow::anyhow!("a control of the abuse stage is refused: {rejection}"))?;
        }
        Ok(self.sinks.write(&folded)?)
    }
}
