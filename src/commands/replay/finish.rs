//! The end of a replay: the last acknowledgements, the last verdicts, the report.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::report::{Report, Verdicts};
use super::run::Run;
use super::verdict_watch::lock;
use super::{PARTLY, ReplayArgs};
use crate::commands::shared::Interrupt;

const POLL: Duration = Duration::from_millis(20);
/// How long a replay that is to stop waits for the next acknowledgement.
const STOPPING_TIME_MAX: Duration = Duration::from_secs(5);

/// A replay that has sent all it will send.
pub(super) struct Ended {
    pub(super) run: Run,
    pub(super) outcome: anyhow::Result<()>,
    pub(super) interrupt: Interrupt,
}

impl Ended {
    /// Waits for the last acknowledgements and verdicts, keeps the progress, and prints the report.
    ///
    /// # Errors
    /// What ended the replay before its time.
    pub(super) fn finish(self, args: &ReplayArgs) -> anyhow::Result<ExitCode> {
        let Self { mut run, outcome, interrupt } = self;
        let mut outcome = outcome.and_then(|()| settle(&mut run));
        // Records that only wait in this process were not sent yet.
        let seconds = run.clock.elapsed().as_secs_f64();
        if outcome.is_ok() && !run.stop.is_given() {
            outcome = wait_for_verdicts(&mut run, args.await_timeout);
        }
        let saved = run.save();
        run.clear_line();
        let interrupted = interrupt.exit_code();
        let verdicts = run.verdicts.take().map(|watch| anyhow::Ok(Verdicts::of(&lock(&*watch.end()?)))).transpose()?;
        let unanswered = verdicts.as_ref().map_or(0, |verdicts| verdicts.unanswered);
        let report = Report {
            source: args.source.clone(),
            target: args.to.clone(),
            records: run.counts.records,
            sent: run.counts.sent,
            acknowledged: run.counts.acknowledged,
            refused: run.counts.refused,
            faults: run.counts.faults,
            bytes: run.counts.bytes,
            seconds,
            acknowledged_per_second: if seconds > 0.0 { run.counts.acknowledged as f64 / seconds } else { 0.0 },
            late_ms: (!matches!(args.pace(), super::Pace::Max)).then(|| run.lateness.percentiles()),
            backwards: run.schedule.backwards,
            timeless: run.schedule.timeless,
            is_interrupted: interrupted.is_some(),
            verdicts,
        };
        if report.records == 0 && outcome.is_ok() && interrupted.is_none() && args.progress.as_ref().is_some_and(|path| path.exists()) {
            say!("tollgate: --progress: everything was acknowledged before; remove the file to begin anew");
        }
        report.write(&mut std::io::stdout(), args.json)?;
        saved?;
        if interrupted.is_some() || outcome.is_err() {
            say_how_to_go_on(args);
        }
        outcome?;
        if let Some(code) = interrupted {
            return Ok(code);
        }
        Ok(match () {
            () if unanswered > 0 => {
                say!("tollgate: {unanswered} events have no verdict after {} s; is a worker running?", args.await_timeout.as_secs());
                ExitCode::FAILURE
            }
            () if report.faults + report.refused > 0 => ExitCode::from(PARTLY),
            () => ExitCode::SUCCESS,
        })
    }
}

/// Waits until every record was acknowledged or refused. If the replay is to stop, it waits no longer than [`STOPPING_TIME_MAX`] for the next
/// of them.
fn settle(run: &mut Run) -> anyhow::Result<()> {
    let deadline = Instant::now() + run.sender.time_max();
    let (mut settled, mut stopping_since) = (run.counts.settled(), None);
    while !run.sender.settle(POLL) {
        run.look()?;
        if run.counts.settled() > settled {
            (settled, stopping_since) = (run.counts.settled(), None);
        }
        if run.stop.is_given() && stopping_since.get_or_insert_with(Instant::now).elapsed() >= STOPPING_TIME_MAX {
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

/// Waits until every event has its verdict, or for that long.
fn wait_for_verdicts(run: &mut Run, time_max: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + time_max;
    while run.verdicts.as_ref().is_some_and(|verdicts| verdicts.awaiting().unanswered() > 0) && Instant::now() < deadline {
        run.look()?;
        if run.stop.wait(POLL) {
            break;
        }
    }
    Ok(())
}

fn say_how_to_go_on(args: &ReplayArgs) {
    match &args.progress {
        Some(path) => say!("tollgate: to go on, run the same command again; {} says what was acknowledged", path.display()),
        None => say!("tollgate: without --progress FILE nothing says what was acknowledged, so the same command would begin anew"),
    }
}
