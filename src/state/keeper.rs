//! The keeper of a partition's state: the thread that takes it over, and then writes its checkpoints.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::metrics::Metrics;
use crate::settings::KafkaSettings;
use tollgate_core::record::Partition;
use tollgate_core::thread::StoreLimits;

use super::restore::{RestoreError, RestoreParts, TakenOver, Takeover, take_over};
use super::transaction::{Job, Outcome, Transactions};

/// The first pause before a failed restore is tried again; each is twice the one before.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(250);
/// The longest.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often to look whether the keeper is still wanted.
const WANTED_POLL: Duration = Duration::from_millis(50);

/// What every keeper of a member shares.
#[derive(Debug, Clone)]
pub struct KeeperParts {
    /// Brokers, group and topics.
    pub kafka: Arc<KafkaSettings>,
    /// The bounds of restored threads.
    pub limits: StoreLimits,
    /// The largest batch that the state topic takes, in bytes.
    pub batch_bytes_max: u64,
    /// Where to count.
    pub metrics: Metrics,
    /// Where reports go.
    pub reports: Sender<KeeperReport>,
}

/// What a keeper has to say of its partition.
#[derive(Debug)]
pub struct KeeperReport {
    /// The partition.
    pub partition: Partition,
    /// Which assignment of it.
    pub epoch: u64,
    /// What.
    pub report: Report,
}

/// See [`KeeperReport`].
#[derive(Debug)]
pub enum Report {
    /// The state is here.
    Restored(Box<Takeover>),
    /// It is not, and is tried again.
    RestoreFailed(RestoreError),
    /// A checkpoint is written.
    Written,
    /// A checkpoint came to nothing.
    Refused,
    /// A checkpoint came to nothing, and the member must hear from its group before another can be written.
    Outdated,
    /// The keeper is at its end, because another member has taken the state over.
    Fenced,
    /// The keeper is at its end: what became of its last checkpoint is unknown, or it panicked.
    Lost,
}

/// See the module. Dropping it ends it, after what it is doing.
#[derive(Debug)]
pub struct Keeper {
    jobs: Sender<Job>,
    is_wanted: Arc<AtomicBool>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Relaxed);
    }
}

impl Keeper {
    /// Starts the keeper of a partition, which waits for `delay` before it takes the state over.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start(parts: KeeperParts, partition: Partition, epoch: u64, delay: Duration) -> std::io::Result<Self> {
        let (jobs, wanted) = channel();
        let is_wanted = Arc::new(AtomicBool::new(true));
        let work = Work { parts, partition, epoch, is_wanted: Arc::clone(&is_wanted) };
        let run = move || {
            if catch_unwind(AssertUnwindSafe(|| work.run(delay, &wanted))).is_err() {
                work.report(Report::Lost);
            }
        };
        std::thread::Builder::new().name(format!("keeper-{partition}")).spawn(run)?;
        Ok(Self { jobs, is_wanted })
    }

    /// Has a checkpoint written; what becomes of it is reported.
    pub fn write(&self, job: Job) {
        // A keeper that is gone has reported that it is lost.
        let _sent = self.jobs.send(job);
    }
}

struct Work {
    parts: KeeperParts,
    partition: Partition,
    epoch: u64,
    is_wanted: Arc<AtomicBool>,
}

impl Work {
    fn run(&self, delay: Duration, jobs: &Receiver<Job>) {
        if !self.wait(delay) {
            return;
        }
        let Some(transactions) = self.restore() else { return };
        while let Ok(job) = jobs.recv() {
            if !self.write(&transactions, &job) {
                return;
            }
        }
    }

    /// Takes the state over, however often that has to be tried; `None` if nobody wants it any more.
    fn restore(&self) -> Option<Transactions> {
        let KeeperParts { kafka, limits, batch_bytes_max, metrics, .. } = &self.parts;
        let parts = RestoreParts { kafka, partition: self.partition, limits: *limits, batch_bytes_max: *batch_bytes_max, metrics };
        let mut pause = RETRY_PAUSE_MIN;
        loop {
            let started = Instant::now();
            let outcome = take_over(&parts, || self.is_wanted());
            let label = match &outcome {
                Ok(Some(_)) => "restored",
                Ok(None) => "abandoned",
                Err(_) => "failed",
            };
            metrics.restore_duration.with_label_values(&[label]).observe(started.elapsed().as_secs_f64());
            match outcome {
                Ok(Some(TakenOver { takeover, transactions, readers })) => {
                    self.log(&takeover, started.elapsed());
                    self.report(Report::Restored(Box::new(takeover)));
                    drop(readers);
                    return Some(transactions);
                }
                Ok(None) => return None,
                Err(error) => {
                    metrics.restore_failures.with_label_values(&[error.reason()]).inc();
                    self.report(Report::RestoreFailed(error));
                }
            }
            if !self.wait(pause) {
                return None;
            }
            pause = (pause * 2).min(RETRY_PAUSE_MAX);
        }
    }

    /// Writes a checkpoint; whether another can follow.
    fn write(&self, transactions: &Transactions, job: &Job) -> bool {
        let KeeperParts { metrics, .. } = &self.parts;
        let (partition, started) = (self.partition, Instant::now());
        let (label, report) = match transactions.write(job) {
            Outcome::Written => {
                metrics.checkpoint_duration.observe(started.elapsed().as_secs_f64());
                metrics.checkpoint_records.inc_by(job.checkpoint.records.len() as u64);
                metrics.checkpoint_bytes.inc_by(job.checkpoint.bytes() as u64);
                ("written", Report::Written)
            }
            Outcome::Outdated => {
                tracing::info!(%partition, "the group is being rebalanced: the checkpoint is left to the next one");
                ("refused", Report::Outdated)
            }
            Outcome::Refused(error) => {
                tracing::warn!(%partition, %error, "a checkpoint was refused; the next one covers it");
                ("refused", Report::Refused)
            }
            Outcome::Fenced => {
                tracing::warn!(%partition, "another member has taken the state over");
                ("fenced", Report::Fenced)
            }
            Outcome::Lost(error) => {
                tracing::warn!(%partition, %error, "what became of a checkpoint is unknown; the state is read again");
                ("lost", Report::Lost)
            }
        };
        if !matches!(report, Report::Written) {
            metrics.commit_failures.inc();
        }
        metrics.checkpoints.with_label_values(&[label]).inc();
        let can_go_on = !matches!(report, Report::Fenced | Report::Lost);
        self.report(report);
        can_go_on
    }

    fn log(&self, takeover: &Takeover, took: Duration) {
        let threads = takeover.restored.as_ref().map_or(0, |restored| restored.threads.len());
        let start = takeover.start.map(|start| start.0);
        let (partition, records, bytes) = (self.partition, takeover.records, takeover.bytes);
        tracing::info!(%partition, threads, records, bytes, start, seconds = took.as_secs_f64(), "restored");
    }

    fn report(&self, report: Report) {
        // Whoever has let the partition go does not listen.
        let _heard = self.parts.reports.send(KeeperReport { partition: self.partition, epoch: self.epoch, report });
    }

    fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Waits; whether the keeper is still wanted then.
    fn wait(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while self.is_wanted() && Instant::now() < deadline {
            std::thread::sleep(WANTED_POLL.min(deadline.saturating_duration_since(Instant::now())));
        }
        self.is_wanted()
    }
}
