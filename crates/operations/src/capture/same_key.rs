//! Going on with stand-ins: they have to be made under the key of the first part, or the same user would be two in one file.

use anyhow::{bail, ensure};
use tollgate_core::event::record::{Header, Record};
use tollgate_core::redact::Redactor;

use tollgate_config::settings::KafkaSettings;
use tollgate_recordings::{LastLine, write_envelope};

use super::CLIENT_ID;
use crate::{Span, Step, TopicRecords};

/// Checks that a key gives the stand-ins that a file holds: the last record of the file is read from the topic again, and its stand-ins are
/// made again.
///
/// # Errors
/// It gives others. Where retention has taken that record, nothing can be compared, and the user is told.
pub(super) fn check_key(kafka: &KafkaSettings, topic: &str, last: &LastLine, redactor: &mut Redactor) -> anyhow::Result<()> {
    let LastLine { partition, offset, line } = last;
    let span = Span { partition: *partition, next: *offset, end: Some(offset + 1) };
    let mut records = TopicRecords::open(kafka, CLIENT_ID, topic, &[span])?;
    loop {
        match records.step()? {
            Step::Record(record) => {
                let again = record.with_borrowed(|record| line_of(record, redactor));
                ensure!(
                    again.as_deref() == Some(line.as_slice()),
                    "--redact-key-file: found another key than that of the records in the file; --resume goes on under the same one"
                );
                return Ok(());
            }
            Step::Nothing => {}
            Step::Deleted { .. } | Step::End => {
                say!(
                    "tollgate: the last record of the file is gone from the topic, so that its key cannot be compared with --redact-key-file"
                );
                return Ok(());
            }
            Step::Unreadable(..) => bail!("partition {partition}: found another record at offset {offset} than in the file"),
        }
    }
}

/// Returns the line of a record's stand-ins, without its line end.
fn line_of(record: &Record<'_>, redactor: &mut Redactor) -> Option<Vec<u8>> {
    let redacted = redactor.redact(record).ok()?;
    let headers: Vec<_> = redacted.headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect();
    let mut line = Vec::new();
    let record = Record { key: redacted.key.as_deref(), value: redacted.value.as_deref(), headers: &headers, ..*record };
    write_envelope(&record, true, &mut line);
    line.pop();
    Some(line)
}
