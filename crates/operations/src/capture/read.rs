//! Taking the records of a topic down, in the order of their times.

use std::time::{Duration, Instant};

use tollgate_core::event::record::{Header, Record};
use tollgate_core::redact::{RedactedRecord, Redactor};

use tollgate_recordings::write_envelope;
use tollgate_worker::Stop;

use super::progress::Progress;
use crate::{Step, TopicRecords};

/// How long a record may wait for its piece of the file where the end is open.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// How many records that were left out are named.
const NAMED_MAX: usize = 10;
/// How many records are read before progress is shown and the sign to stop is looked for.
const LOOK_EVERY: u64 = 64;

/// What could not be captured.
#[derive(Debug, Default)]
pub struct Faults {
    /// Records that were left out, with the reason.
    left_out: Vec<String>,
    count: u64,
    /// Offsets that retention took before they were read.
    deleted: u64,
}

impl Faults {
    fn leave_out(&mut self, sentence: String) {
        self.count += 1;
        if self.left_out.len() < NAMED_MAX {
            self.left_out.push(sentence);
        }
    }

    /// Returns whether nothing is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.missing() == 0
    }

    /// Returns how many records are missing, as far as offsets tell.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.count + self.deleted
    }

    /// Tells people what is missing.
    pub fn report(&self) {
        self.left_out.iter().for_each(|sentence| say!("tollgate: {sentence}"));
        if self.count > 0 {
            say!("tollgate: {} records were left out", self.count);
        }
        if self.deleted > 0 {
            say!("tollgate: {} offsets were deleted by the topic's retention before they were read", self.deleted);
        }
    }
}

/// What is done with each record.
pub(super) struct RecordSink<'t, W> {
    pub(super) progress: &'t mut Progress,
    pub(super) faults: &'t mut Faults,
    /// What replaces the contents; `None` leaves records as they are.
    pub(super) redactor: Option<Redactor>,
    /// Has a line appended to the file, or what waits written.
    pub(super) write: W,
}

/// What is to be written.
pub(super) enum Write<'w> {
    /// What this appends.
    Line(&'w mut dyn FnMut(&mut Vec<u8>)),
    /// What waits.
    Flush,
}

/// Writes each record as a line, up to the end. Returns `false` if the sign to stop came first.
pub(super) fn read<W: FnMut(Write<'_>) -> anyhow::Result<()>>(
    records: &mut TopicRecords,
    is_followed: bool,
    stop: &Stop,
    taken: &mut RecordSink<'_, W>,
) -> anyhow::Result<bool> {
    let mut flushed = Instant::now();
    for number in 0_u64.. {
        let step = records.step()?;
        if number.is_multiple_of(LOOK_EVERY) || matches!(step, Step::Nothing) {
            if stop.is_given() {
                return Ok(false);
            }
            if is_followed && flushed.elapsed() >= FLUSH_INTERVAL {
                (taken.write)(Write::Flush)?;
                flushed = Instant::now();
            }
            taken.progress.show(records.left());
        }
        match step {
            Step::Record(record) => record.with_borrowed(|record| taken.record(record))?,
            Step::Unreadable(partition, offset) => {
                let place = format!("partition {partition}, offset {offset}");
                taken.faults.leave_out(format!("{place}: left out, a header's name is not UTF-8 and cannot be read"));
            }
            Step::Deleted { count, .. } => taken.faults.deleted += count,
            Step::Nothing => {}
            Step::End => break,
        }
    }
    Ok(true)
}

impl<W: FnMut(Write<'_>) -> anyhow::Result<()>> RecordSink<'_, W> {
    /// Writes a record, with stand-ins for its contents if that is asked for.
    fn record(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        let Some(redactor) = &mut self.redactor else { return self.line(record) };
        match redactor.redact(record) {
            Ok(RedactedRecord { key, value, headers }) => {
                let headers: Vec<_> = headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect();
                self.line(&Record { key: key.as_deref(), value: value.as_deref(), headers: &headers, ..*record })
            }
            Err(fault) => {
                self.faults.leave_out(fault.to_string());
                Ok(())
            }
        }
    }

    fn line(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        let Self { progress, write, redactor, .. } = self;
        write(Write::Line(&mut |lines| {
            let before = lines.len();
            write_envelope(record, redactor.is_some(), lines);
            progress.note((lines.len() - before) as u64, record.timestamp_ms);
        }))
    }
}
