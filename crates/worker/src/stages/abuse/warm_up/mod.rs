//! Warm-ups: rules that are new to a partition's state are shown what the log still holds, while the others go on.
//!
//! A thread reads the log for a partition and folds it for the new rules. When it is where the partition is, it hands the fold over. The
//! stage takes it in before its next record, or gives it back if records are missing in it.
//!
//! ```text
//! member   stage ─ new rules ──╮         ╭─ offer ─ taken in ─ checkpoint ─ in force
//! thread              warm-up ─╰─ read ──╯◀─ given back
//! ```
//!
//! | module | what |
//! |---|---|
//! | `reader` | the thread that reads the log |

mod reader;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use prometheus::IntGauge;
use rustc_hash::FxHashMap;
use tollgate_abuse::Abuse;
use tollgate_core::event::record::Partition;

use crate::metrics::Metrics;

use reader::LogReader;
pub(super) use reader::ReaderParts;

/// How long `/livez` names a reader that panicked, and the first pause before it is started over. Each pause is twice the one before.
const RESTART_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest of these pauses. The rules that wait do no harm to the others, so a worker is not restarted for their sake.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(60);

/// As many subjects of a warm-up are taken in with each record, which takes some milliseconds.
const SUBJECTS_PER_RECORD: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_999);

/// The warm-ups of the partitions of one member.
#[derive(Debug)]
pub(super) struct WarmUps {
    parts: Arc<ReaderParts>,
    /// The metrics of the process.
    metrics: Metrics,
    partitions: FxHashMap<Partition, WarmingPartition>,
}

/// A partition with rules that are not in force yet.
#[derive(Debug)]
struct WarmingPartition {
    step: Step,
    /// The pause before the reader was started last.
    pause: Duration,
    began: Instant,
    rules: String,
    /// The gauges of its rules, which show it for as long as this lives.
    gauges: Vec<IntGauge>,
}

/// How far a warm-up is.
#[derive(Debug)]
enum Step {
    /// No reader runs: one is started after a pause that began here.
    Pausing(Instant),
    /// The reader has the warm-up.
    Reading(LogReader),
    /// The stage has it.
    Offered(LogReader),
}

impl WarmUps {
    pub(super) fn new(parts: &Arc<ReaderParts>, metrics: &Metrics) -> Self {
        Self { parts: Arc::clone(parts), metrics: metrics.clone(), partitions: FxHashMap::default() }
    }

    /// Forgets the warm-up of a partition that was given up or lost: its next stage begins anew.
    pub(super) fn forget(&mut self, partition: Partition) {
        if self.partitions.remove(&partition).is_some() {
            self.parts.recovered(partition);
        }
    }

    /// Carries a partition's warm-up on, if it needs one.
    pub(super) fn beside_records(&mut self, partition: Partition, stage: &mut Abuse) {
        let Some(warming) = self.partitions.get_mut(&partition) else {
            if stage.warming().next().is_some() {
                let warming = WarmingPartition::new(stage, &self.metrics);
                tracing::info!(%partition, rules = warming.rules, "rules that are new are shown the log; the others go on");
                self.partitions.insert(partition, warming);
            }
            return;
        };
        if stage.warming().next().is_none() {
            let (rules, seconds) = (&warming.rules, warming.began.elapsed().as_secs_f64());
            tracing::info!(%partition, rules, seconds, "the new rules are in force");
            return self.forget(partition);
        }
        warming.carry_on(partition, stage, &self.parts);
    }
}

impl WarmingPartition {
    fn new(stage: &Abuse, metrics: &Metrics) -> Self {
        let gauges: Vec<_> = stage.warming().map(|rule| metrics.abuse_warming_rules.with_label_values(&[rule])).collect();
        gauges.iter().for_each(IntGauge::inc);
        let (began, rules) = (Instant::now(), stage.warming().collect::<Vec<_>>().join(", "));
        Self { step: Step::Pausing(began), pause: Duration::ZERO, began, rules, gauges }
    }

    /// Starts the reader if there is none, and passes the warm-up on between it and the stage.
    fn carry_on(&mut self, partition: Partition, stage: &mut Abuse, parts: &Arc<ReaderParts>) {
        self.step = match std::mem::replace(&mut self.step, Step::Pausing(Instant::now())) {
            Step::Pausing(since) => {
                if !self.pause.is_zero() && since.elapsed() >= RESTART_PAUSE_MIN {
                    parts.recovered(partition);
                }
                if since.elapsed() < self.pause { Step::Pausing(since) } else { self.start(partition, stage, parts) }
            }
            Step::Reading(reader) => {
                reader.show_applied(stage.applied());
                match reader.offered() {
                    Ok(warm_up) => {
                        stage.offer(warm_up, SUBJECTS_PER_RECORD);
                        Self::offered(reader, stage)
                    }
                    Err(TryRecvError::Empty) => Step::Reading(reader),
                    Err(TryRecvError::Disconnected) => self.pausing(),
                }
            }
            Step::Offered(reader) => Self::offered(reader, stage),
        };
    }

    /// Returns the step of a warm-up that the stage was offered, and may give back.
    fn offered(reader: LogReader, stage: &mut Abuse) -> Step {
        match stage.take_back() {
            None => Step::Offered(reader),
            Some(warm_up) => {
                reader.show_applied(stage.applied());
                // One that has ended is found so when it offers nothing any more.
                reader.give_back(warm_up);
                Step::Reading(reader)
            }
        }
    }

    fn pausing(&mut self) -> Step {
        self.pause = (self.pause * 2).clamp(RESTART_PAUSE_MIN, RESTART_PAUSE_MAX);
        Step::Pausing(Instant::now())
    }

    fn start(&mut self, partition: Partition, stage: &Abuse, parts: &Arc<ReaderParts>) -> Step {
        // Taken in, it needs no reader any more.
        let Some(warm_up) = stage.warm_up() else { return Step::Pausing(Instant::now()) };
        match LogReader::start(parts, partition, stage.applied(), warm_up) {
            Ok(reader) => Step::Reading(reader),
            Err(error) => {
                tracing::error!(%partition, %error, "no thread to read the log for rules that are new; trying again");
                self.pausing()
            }
        }
    }
}

impl Drop for WarmingPartition {
    fn drop(&mut self) {
        self.gauges.iter().for_each(IntGauge::dec);
    }
}
