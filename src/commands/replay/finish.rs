//! The end of a replay: the last acknowledgements, the last verdicts, the report.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::stop::Stop;

use super::super::process;
use super::report::{Report, Verdicts};
use super::run::Run;
use super::sender::Sender;
use super::verdict_watch::lock;
use super::{PARTLY, ReplayArgs};

/// The exit codes of a process that a signal ended, as shells report them.
const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;
const POLL: Duration = Duration::from_millis(20);

/// The signals that stop a replay.
pub(super) struct Signals {
    pub(super) stop: Stop,
    /// The exit code of the first of them.
    code: Arc<AtomicU8>,
    /// It listens for as long as it lives.
    _runtime: Runtime,
}

/// Watches signals: the first SIGINT or SIGTERM gives the sign to stop, the second ends the process at once.
///
/// # Errors
/// The system does not allow it.
pub(super) fn watch_signals() -> anyhow::Result<Signals> {
    let runtime = process::runtime()?;
    let _entered = runtime.enter();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (stop, code) = (Stop::default(), Arc::new(AtomicU8::new(0)));
    let (given, first) = (stop.clone(), Arc::clone(&code));
    runtime.spawn(async move {
        for is_first in [true, false] {
            let code = tokio::select! {
                _ = interrupt.recv() => INTERRUPTED,
                _ = terminate.recv() => TERMINATED,
            };
            if !is_first {
                std::process::exit(i32::from(code));
            }
            first.store(code, Ordering::Relaxed);
            given.give();
        }
    });
    drop(_entered);
    Ok(Signals { stop, code, _runtime: runtime })
}

/// A replay that has sent all it will send.
pub(super) struct Ended {
    pub(super) run: Run,
    pub(super) outcome: anyhow::Result<()>,
    pub(super) signals: Signals,
}

impl Ended {
    /// Waits for the last acknowledgements and verdicts, keeps the progress, and prints the report.
    ///
    /// # Errors
    /// What ended the replay before its time.
    pub(super) fn finish(self, args: &ReplayArgs) -> anyhow::Result<ExitCode> {
        let Self { mut run, outcome, signals } = self;
        let seconds = run.clock.elapsed().as_secs_f64();
        let mut outcome = outcome.and_then(|()| settle(&mut run));
        if outcome.is_ok() && !run.stop.is_given() {
            outcome = wait_for_verdicts(&mut run, args.await_timeout);
        }
        let saved = run.save();
        run.clear_line();
        let code = signals.code.load(Ordering::Relaxed);
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
            sent_per_second: if seconds > 0.0 { run.counts.sent as f64 / seconds } else { 0.0 },
            late_ms: (!matches!(args.pace(), super::Pace::Max)).then(|| run.lateness.percentiles()),
            backwards: run.schedule.backwards,
            timeless: run.schedule.timeless,
            is_interrupted: code > 0,
            verdicts,
        };
        report.write(&mut std::io::stdout(), args.json)?;
        saved?;
        if code > 0 || outcome.is_err() {
            say_how_to_go_on(args);
        }
        outcome?;
        Ok(match () {
            () if code > 0 => ExitCode::from(code),
            () if unanswered > 0 => {
                say!("tollgate: {unanswered} events have no verdict after {} s; is a worker running?", args.await_timeout.as_secs());
                ExitCode::FAILURE
            }
            () if report.faults + report.refused > 0 => ExitCode::from(PARTLY),
            () => ExitCode::SUCCESS,
        })
    }
}

/// Waits until every record was acknowledged or refused.
fn settle(run: &mut Run) -> anyhow::Result<()> {
    let deadline = Instant::now() + Sender::report_time_max();
    while !run.sender.settle(POLL) {
        run.look()?;
        anyhow::ensure!(Instant::now() < deadline, "the brokers did not acknowledge all records in time; they are away");
    }
    run.look()
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
