//! Recorded traffic, sent to a topic again at its own pace or another.
//!
//! ```text
//! file or topic ─▶ rewrite (copies, times) ─▶ schedule ─▶ sender ─▶ topic ─▶ worker
//!                                                           │                  │
//!                                             progress ◀────┘     verdicts ◀───┘
//! ```

mod finish;
mod report;
mod run;
mod sender;
mod target;
mod topic_source;
mod verdict_watch;

use std::time::Duration;

use tollgate_config::settings::KafkaSettings;
use tollgate_recordings::replay::{Pace, Progress, ProgressFile, Rewriter, Schedule, Source, Times, Tracker};
use tollgate_worker::Stop;

use run::{Clock, Counts, Run};
use sender::sender;
use verdict_watch::VerdictWatch;

pub use report::{Kind, Report, Verdicts};
pub use run::report_fault;
pub use target::{Target, TargetSettings};
pub use topic_source::TopicSource;

/// A replay that begins.
pub struct Replay<'r> {
    /// The brokers.
    pub kafka: &'r KafkaSettings,
    /// The partitions of the topic.
    pub target: Target,
    /// The settings of the topic.
    pub target_settings: TargetSettings,
    /// What is sent of a record.
    pub rewriter: Rewriter,
    /// When records are due.
    pub pace: Pace,
    /// Whether times are moved to now.
    pub is_shifted: bool,
    /// Whether the verdicts are read.
    pub is_awaiting: bool,
    /// How long to wait for the last verdicts.
    pub await_timeout: Duration,
    /// How often everything is sent.
    pub rounds: u64,
    /// What the replay is of, and how far it came before.
    pub progress: Progress,
    /// Whether the replay goes on behind that.
    pub is_resumed: bool,
    /// The file that keeps the progress.
    pub progress_file: Option<ProgressFile>,
    /// The sign to stop.
    pub stop: Stop,
}

/// A replay that has ended.
#[derive(Debug)]
pub struct Ended {
    /// What was done.
    pub report: Report,
    /// Whether the progress is kept.
    pub saved: anyhow::Result<()>,
    /// What ended the replay before its time, if anything did.
    pub outcome: anyhow::Result<()>,
}

impl Replay<'_> {
    /// Sends the records of a source, in rounds. `open` opens the source: for the first round behind what was acknowledged before.
    ///
    /// # Errors
    /// The source cannot be opened, no producer can be made, the verdicts cannot be read, or the file of the progress cannot be written.
    pub fn run(self, open: impl Fn(bool) -> anyhow::Result<Box<dyn Source>>) -> anyhow::Result<Ended> {
        let (mut source, pace, rounds, is_resumed) = (open(true)?, self.pace, self.rounds, self.is_resumed);
        let mut run = Run {
            sender: sender(self.kafka, self.target_settings.bytes_max)?,
            schedule: Schedule::new(pace),
            verdicts: self.is_awaiting.then(|| VerdictWatch::begin(self.kafka)).transpose()?,
            clock: Clock::begin(pace, self.progress.shift_ms.filter(|_| is_resumed)),
            counts: Counts::default(),
            lateness: Times::new()?,
            tracker: Tracker::default(),
            replay: self,
        };
        // A file that cannot be written is found out before anything is sent.
        run.save()?;
        let mut outcome = run.send_round(&mut *source, 0);
        for round in 1..rounds {
            if !matches!(outcome, Ok(true)) || run.counts.records == 0 {
                break;
            }
            outcome = open(false).and_then(|mut source| run.send_round(&mut *source, round));
        }
        run.finish(outcome.map(drop))
    }
}
