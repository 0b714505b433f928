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

use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use prometheus::IntGauge;
use rustc_hash::FxHashMap;
use tollgate_core::abuse::Abuse;
use tollgate_core::record::Partition;

use crate::metrics::Metrics;

use reader::LogReader;
pub(super) use reader::ReaderParts;

/// The pause before a reader that panicked, or could not be started, is started over.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

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
    /// The thread that reads the log; `None` before it is started.
    reader: Option<LogReader>,
    start_at: Instant,
    /// Whether the stage has the warm-up, and not the reader.
    is_offered: bool,
    began: Instant,
    rules: String,
    /// The gauges of its rules, which show it for as long as this lives.
    gauges: Vec<IntGauge>,
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
    pub(super) fn attend(&mut self, partition: Partition, stage: &mut Abuse) {
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
        let (now, rules) = (Instant::now(), stage.warming().collect::<Vec<_>>().join(", "));
        Self { reader: None, start_at: now, is_offered: false, began: now, rules, gauges }
    }

    /// Starts the reader if there is none, and passes the warm-up on between it and the stage.
    fn carry_on(&mut self, partition: Partition, stage: &mut Abuse, parts: &Arc<ReaderParts>) {
        let Some(reader) = &self.reader else { return self.start(partition, stage, parts) };
        reader.show_applied(stage.applied());
        if !self.is_offered {
            match reader.offered() {
                Ok(warm_up) => stage.offer(warm_up),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => return self.start_over(),
            }
            self.is_offered = true;
        }
        if let Some(warm_up) = stage.take_back() {
            self.is_offered = false;
            if !reader.give_back(warm_up) {
                self.start_over();
            }
        }
    }

    fn start_over(&mut self) {
        (self.reader, self.is_offered, self.start_at) = (None, false, Instant::now() + RESTART_PAUSE);
    }

    fn start(&mut self, partition: Partition, stage: &Abuse, parts: &Arc<ReaderParts>) {
        if Instant::now() < self.start_at {
            return;
        }
        let Some(warm_up) = stage.warm_up() else { return };
        match LogReader::start(parts, partition, stage.applied(), warm_up) {
            Ok(reader) => self.reader = Some(reader),
            Err(error) => {
                tracing::error!(%partition, %error, "no thread to read the log for rules that are new; trying again");
                self.start_over();
            }
        }
    }
}

impl Drop for WarmingPartition {
    fn drop(&mut self) {
        self.gauges.iter().for_each(IntGauge::dec);
    }
}
