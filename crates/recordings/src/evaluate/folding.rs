//! A captured signals topic is counted again, each partition for itself, as the abuse stage counted it.

use std::sync::Arc;

use tollgate_abuse::{Abuse, AbuseRules, AbuseState};
use tollgate_core::decide::signal::SignalRejection;
use tollgate_core::engine::stage::{Progress, Stage as _};

use crate::{Format, Input, Line, LineFault, Order, Partitions, Reader, read_line, unreadable_from_here};

use super::{CutTurns, Evaluated, Report, Sinks};

/// The longest line of a captured signals record, in bytes. A record holds the signals of one poll of a member.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Counts every line, and reports those that are rejected.
///
/// # Errors
/// A result cannot be written, or there are too many partitions.
pub fn fold(mut lines: Input, topic: &str, rules: &Arc<AbuseRules>, mut sinks: Sinks, report: Report<'_>) -> anyhow::Result<Evaluated> {
    let mut reader = Reader::new(Format::Envelope);
    let (mut order, mut partitions, mut line) = (Order::default(), Partitions::<Abuse>::default(), Vec::new());
    for number in 1_u64.. {
        let read = match read_line(&mut lines, &mut line, LINE_BYTES_MAX) {
            Ok(Line::End) => break,
            Ok(Line::Whole) if line.trim_ascii().is_empty() => continue,
            Ok(Line::Whole) => reader.read(&line),
            Ok(Line::TooLong) => {
                let found = format!("more than {LINE_BYTES_MAX} bytes");
                Err(LineFault::new("line_too_long", "line", found, "name a capture of the signals topic"))
            }
            Err(error) => {
                report(number, &unreadable_from_here(&error))?;
                break;
            }
        };
        let captured = read.and_then(|captured| order.note(&captured, topic).map(|()| captured));
        let fault = match captured {
            Ok(captured) => captured.with_record(topic, i64::try_from(number - 1)?, |record, _| {
                let stage = partitions.of(record, || Abuse::new(Arc::clone(rules), AbuseState::default()))?;
                let Progress::Done(folded) = stage.apply(record, &mut ()) else { anyhow::bail!("the abuse stage waits for nobody") };
                sinks.write(&folded)?;
                Ok(folded.counts.rejected.as_ref().map(no_signals))
            })?,
            Err(fault) => Some(fault),
        };
        if let Some(fault) = fault {
            report(number, &fault)?;
        }
    }
    Ok(Evaluated { redacted: 0, uncounted: sinks.finish()?, cut_turns: CutTurns::default() })
}

/// Returns the fault of a record that holds no signals.
fn no_signals(rejection: &SignalRejection) -> LineFault {
    LineFault::new(
        rejection.as_str(),
        "value",
        rejection.to_string(),
        "name a capture of the signals topic, made by this version or an earlier one",
    )
}
