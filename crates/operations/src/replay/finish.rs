//! The end of a replay: the last acknowledgements and the last verdicts.

use std::time::{Duration, Instant};

use super::Ended;
use super::report::{Report, Verdicts};
use super::run::Run;
use super::verdict_watch::lock;

const POLL: Duration = Duration::from_millis(20);
/// How long a replay that is to stop waits for the next acknowledgement.
const STOPPING_TIME_MAX: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// Waits for the last acknowledgements and verdicts, and keeps the progress.
    ///
    /// # Errors
    /// The verdicts could not be read.
    pub(super) fn finish(mut self, outcome: anyhow::Result<()>) -> anyhow::Result<Ended> {
        let run = &mut self;
        let mut outcome = outcome.and_then(|()| settle(run));
        // Records that only wait in this process were not sent yet.
        let seconds = run.clock.elapsed().as_secs_f64();
        if outcome.is_ok() && !run.replay.stop.is_given() {
            outcome = wait_for_verdicts(run);
        }
        let saved = run.save();
        run.clear_line();
        let verdicts = run.verdicts.take().map(|watch| anyhow::Ok(Verdicts::of(&lock(&*watch.end()?)))).transpose()?;
        let report = Report {
            source: run.replay.progress.source.clone(),
            target: run.replay.progress.target.clone(),
            records: run.counts.records,
            sent: run.counts.sent,
            acknowledged: run.counts.acknowledged,
            refused: run.counts.refused,
            faults: run.counts.faults,
            bytes: run.counts.bytes,
            seconds,
            acknowledged_per_second: if seconds > 0.0 { run.counts.acknowledged as f64 / seconds } else { 0.0 },
            late_ms: run.clock.is_timed.then(|| run.lateness.percentiles()),
            backwards: run.schedule.backwards,
            timeless: run.schedule.timeless,
            is_interrupted: run.replay.stop.is_given(),
            verdicts,
        };
        Ok(Ended { report, saved, outcome })
    }
}

/// Waits until every record was acknowledged or refused. If the replay is to stop, it waits no longer than [`STOPPING_TIME_MAX`] for the next
/// of them.
fn settle(run: &mut Run<'_>) -> anyhow::Result<()> {
    let deadline = Instant::now() + run.sender.time_max();
    let (mut settled, mut stopping_since) = (run.counts.settled(), None);
    while !run.sender.settle(POLL) {
        run.look()?;
        if run.counts.settled() > settled {
            (settled, stopping_since) = (run.counts.settled(), None);
        }
        if run.replay.stop.is_given() && stopping_since.get_or_insert_with(Instant::now).elapsed() >= STOPPING_TIME_MAX {
            break;
        }
        anyhow::ensure!(Instant::now() < deadline, "the brokers did not acknowledge all records in time; they are away");
    }
    run.look()?;
    let open = run.counts.sent.saturating_sub(run.counts.settled());
    if open > 0 {
        run.clear_line();
        say!("tollgate: not acknowledged: {open} of the records sent; the brokers may have them or not");
    }
    Ok(())
}

/// Waits until every event has its verdict, as long as the replay is to wait.
fn wait_for_verdicts(run: &mut Run<'_>) -> anyhow::Result<()> {
    let deadline = Instant::now() + run.replay.await_timeout;
    while run.verdicts.as_ref().is_some_and(|verdicts| verdicts.awaiting().unanswered() > 0) && Instant::now() < deadline {
        run.look()?;
        if run.replay.stop.wait(POLL) {
            break;
        }
    }
    Ok(())
}
