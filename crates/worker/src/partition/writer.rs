//! The checkpoint writer of a partition: the thread that takes its state over and then writes its checkpoints.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::health::Health;
use crate::kafka::{Right, StageTopics};
use crate::metrics::Metrics;
use crate::outbox::hint;
use tollgate_config::settings::KafkaSettings;
use tollgate_core::engine::checkpoint::KeyedState;
use tollgate_core::event::record::Partition;

use super::offset_commit::Job;
use super::readers::SharedReaders;
use super::reports::{Report, WriterReport};
use super::restore::{Takeover, take_over};
use super::restore_clients::{Clients, RestoreParts};
use super::restore_error::RestoreError;
use super::retry::{Failures, Owner, Wanted};
use super::transaction::{Outcome, Transactions};

/// How often a restore that keeps failing is reported.
const FAILURE_REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// How often the producer is served while there is nothing to write.
const SERVE_INTERVAL: Duration = Duration::from_secs(1);

/// What every checkpoint writer of a member shares.
pub struct WriterParts<K: KeyedState> {
    /// Brokers and their properties.
    pub kafka: Arc<KafkaSettings>,
    /// The group, the input topic and the state topic.
    pub topics: Arc<StageTopics>,
    /// The limits of the restored state.
    pub limits: K::Limits,
    /// The largest batch that the state topic takes, in bytes.
    pub batch_bytes_max: u64,
    /// The metrics to count in.
    pub metrics: Metrics,
    /// The health report that shows rights that are wanting and threads that panicked.
    pub health: Arc<Health>,
    /// The channel for reports.
    pub reports: Sender<WriterReport<K>>,
    /// What the takeovers of the member read with.
    pub readers: Arc<SharedReaders>,
}

impl<K: KeyedState> std::fmt::Debug for WriterParts<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriterParts").field("topics", &self.topics).finish_non_exhaustive()
    }
}

impl<K: KeyedState> Clone for WriterParts<K> {
    fn clone(&self) -> Self {
        Self {
            kafka: Arc::clone(&self.kafka),
            topics: Arc::clone(&self.topics),
            limits: self.limits,
            batch_bytes_max: self.batch_bytes_max,
            metrics: self.metrics.clone(),
            health: Arc::clone(&self.health),
            reports: self.reports.clone(),
            readers: Arc::clone(&self.readers),
        }
    }
}

/// A running checkpoint writer. When it is dropped, it ends after its current work.
#[derive(Debug)]
pub struct CheckpointWriter {
    /// What the thread asks whether it is wanted. It is dropped before the jobs.
    _owner: Owner,
    jobs: Sender<Job>,
}

impl CheckpointWriter {
    /// Starts the checkpoint writer of a partition. It takes the state over first.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start<K>(parts: WriterParts<K>, partition: Partition, generation: u64) -> std::io::Result<Self>
    where
        K: KeyedState<Limits: Send + Sync + 'static> + Send + 'static,
    {
        let (jobs, handed_over) = channel();
        let owner = Owner::default();
        let name = parts.topics.writer_thread(partition);
        let work = Work { parts, partition, generation, wanted: owner.wanted() };
        let run = move || {
            let _log = work.parts.topics.enter_log();
            if catch_unwind(AssertUnwindSafe(|| work.run(&handed_over))).is_err() {
                work.parts.health.threads().panicked(&work.thread());
                work.report(Report::Lost);
            }
            work.report_taken();
        };
        std::thread::Builder::new().name(name).spawn(run)?;
        Ok(Self { _owner: owner, jobs })
    }

    /// Hands over a checkpoint to write. Its outcome is reported.
    pub fn write(&self, job: Job) {
        // A writer that has ended has already reported so.
        let _sent = self.jobs.send(job);
    }
}

/// What a writer does after a checkpoint.
enum After {
    GoOn,
    Replace,
    End,
}

struct Work<K: KeyedState> {
    parts: WriterParts<K>,
    partition: Partition,
    generation: u64,
    wanted: Wanted,
}

impl<K: KeyedState> Work<K> {
    fn run(&self, jobs: &Receiver<Job>) {
        let Some(mut transactions) = self.restore() else { return };
        loop {
            let job = match jobs.recv_timeout(SERVE_INTERVAL) {
                Ok(job) => Arc::new(job),
                Err(RecvTimeoutError::Timeout) => {
                    transactions.serve();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            fail::fail_point!("state");
            match self.write(&transactions, &job) {
                After::GoOn => {}
                After::Replace => {
                    let Some(next) = self.replacement() else { return };
                    transactions = next;
                    self.report(Report::Refused);
                }
                After::End => return,
            }
        }
    }

    fn thread(&self) -> String {
        self.parts.topics.writer_thread(self.partition)
    }

    /// Takes the state over, with as many attempts as it needs. It returns `None` once the state is not wanted any more.
    fn restore(&self) -> Option<Transactions> {
        let WriterParts { kafka, topics, limits, batch_bytes_max, metrics, readers, .. } = &self.parts;
        let parts = RestoreParts { kafka, topics, partition: self.partition, batch_bytes_max: *batch_bytes_max, metrics, readers };
        let (mut clients, mut failures) = (None, Failures::new(FAILURE_REPORT_INTERVAL));
        loop {
            let started = Instant::now();
            let outcome = self.attempt(&parts, &mut clients, *limits);
            let label = match &outcome {
                Ok(Some(_)) => "restored",
                Ok(None) => "abandoned",
                Err(_) => "failed",
            };
            metrics.restore_duration.with_label_values(&[label]).observe(started.elapsed().as_secs_f64());
            match outcome {
                Ok(Some(takeover)) => {
                    self.parts.health.threads().recovered(&self.thread());
                    self.report_granted();
                    self.log(&takeover, started.elapsed());
                    self.report(Report::Restored(Box::new(takeover)));
                    return clients.map(Clients::into_transactions);
                }
                Ok(None) => return None,
                // To try again would fence the other member in turn.
                Err(RestoreError::Fenced) => {
                    tracing::warn!(partition = %self.partition, "another member has taken the state over");
                    self.report(Report::Fenced);
                    return None;
                }
                Err(error) => {
                    metrics.restore_failures.with_label_values(&[error.reason()]).inc();
                    if let Some(right) = error.right_wanted(topics) {
                        right.report_refused(&self.parts.health, kafka);
                    }
                    let pause = failures.pause(&error);
                    if failures.is_report_due(&error, Instant::now()) {
                        self.report(Report::RestoreFailed(error));
                    }
                    if !self.wanted.wait(pause) {
                        return None;
                    }
                }
            }
        }
    }

    /// Tries once to take the state over, with the clients of the attempt before if they are of use.
    fn attempt(
        &self,
        parts: &RestoreParts<'_>,
        clients: &mut Option<Clients>,
        limits: K::Limits,
    ) -> Result<Option<Takeover<K>>, RestoreError> {
        let usable = match clients.take().filter(Clients::are_usable) {
            Some(usable) => {
                usable.serve();
                usable
            }
            None => Clients::new(parts)?,
        };
        take_over(parts, clients.insert(usable), limits, || self.wanted.is_wanted())
    }

    /// Returns a producer in place of one that hangs, with as many attempts as it needs. It fences that one, whose open transaction the
    /// brokers abort. Nothing is read again: what was written before is what this partition wrote. Returns `None` once the state is not
    /// wanted any more.
    fn replacement(&self) -> Option<Transactions> {
        let WriterParts { kafka, topics, batch_bytes_max, .. } = &self.parts;
        let mut failures = Failures::new(FAILURE_REPORT_INTERVAL);
        while self.wanted.is_wanted() {
            let made = Transactions::new(kafka, topics, self.partition, *batch_bytes_max).and_then(|next| {
                next.connect()?;
                // A member that no longer owns the partition must not fence the next owner.
                if self.wanted.is_wanted() { next.fence().map(|()| Some(next)) } else { Ok(None) }
            });
            match made {
                Ok(next) => return next,
                Err(error) => {
                    let error = RestoreError::Kafka { doing: "replacing the producer of the state", error };
                    let pause = failures.pause(&error);
                    if failures.is_report_due(&error, Instant::now()) {
                        tracing::warn!(partition = %self.partition, %error, "trying again");
                    }
                    if !self.wanted.wait(pause) {
                        break;
                    }
                }
            }
        }
        None
    }

    /// Writes a checkpoint and reports its outcome, unless the producer has to be replaced first.
    fn write(&self, transactions: &Transactions, job: &Arc<Job>) -> After {
        let WriterParts { metrics, .. } = &self.parts;
        let (partition, started) = (self.partition, Instant::now());
        let (label, report) = match transactions.write(job) {
            Outcome::Written => {
                metrics.checkpoint_duration.observe(started.elapsed().as_secs_f64());
                Right::write(&self.parts.topics.state).report_granted(&self.parts.health);
                Right::group(&self.parts.topics.group_id).report_granted(&self.parts.health);
                self.report_taken();
                metrics.checkpoint_records.inc_by(job.checkpoint.records.len() as u64);
                metrics.checkpoint_bytes.inc_by(job.checkpoint.bytes() as u64);
                ("written", Report::Written)
            }
            Outcome::Outdated => {
                tracing::info!(%partition, "the group is being rebalanced: the checkpoint is left to the next one");
                ("refused", Report::Outdated)
            }
            Outcome::Refused(error) => {
                if !self.report_refused(&error) {
                    tracing::warn!(%partition, %error, "a checkpoint was refused; the next one covers it");
                }
                ("refused", Report::Refused)
            }
            Outcome::Hung => {
                tracing::warn!(%partition, "the client of the state hangs, and another one takes its place; the next checkpoint covers this one");
                metrics.commit_failures.inc();
                metrics.checkpoints.with_label_values(&["refused"]).inc();
                return After::Replace;
            }
            Outcome::Fenced => {
                tracing::warn!(%partition, "another member has taken the state over");
                ("fenced", Report::Fenced)
            }
            Outcome::Lost(error) => {
                if !self.report_refused(&error) {
                    tracing::warn!(%partition, %error, "what became of a checkpoint is unknown; the state is read again");
                }
                ("lost", Report::Lost)
            }
        };
        if !matches!(report, Report::Written) {
            metrics.commit_failures.inc();
        }
        metrics.checkpoints.with_label_values(&[label]).inc();
        let after = if matches!(report, Report::Fenced | Report::Lost) { After::End } else { After::GoOn };
        self.report(report);
        after
    }

    /// Lets the health report name why a checkpoint was refused: a right that is wanting, or a clock. Returns whether it was one of these.
    fn report_refused(&self, error: &KafkaError) -> bool {
        let WriterParts { kafka, topics, health, .. } = &self.parts;
        let code = error.rdkafka_error_code();
        if let Some(right) = Right::refused_by(code, &topics.group_id, || Right::write(&topics.state)) {
            right.report_refused(health, kafka);
            return true;
        }
        let Some(problem) = code.and_then(|code| clock_problem(code, self.partition, &topics.state)) else { return false };
        if health.set_problem(&self.checkpoints(), Some(problem.clone())) {
            tracing::error!("{problem}");
        }
        true
    }

    /// Takes a refusal because of a clock out of the health report: a checkpoint was written, or this writer has ended.
    fn report_taken(&self) {
        if self.parts.health.has_problems() && self.parts.health.set_problem(&self.checkpoints(), None) {
            tracing::info!(partition = %self.partition, "the refusal of checkpoints is over");
        }
    }

    /// Returns the part of the health report that is about the checkpoints of this writer.
    fn checkpoints(&self) -> String {
        format!("checkpoints of {} {}", self.thread(), self.generation)
    }

    /// Reports the rights without which no state is taken over.
    fn report_granted(&self) {
        let WriterParts { topics, health, .. } = &self.parts;
        for right in [Right::transactional_ids(&topics.group_id), Right::read(&topics.state), Right::idempotent_write()] {
            right.report_granted(health);
        }
    }

    fn log(&self, takeover: &Takeover<K>, took: Duration) {
        let entries = takeover.restored.as_ref().map_or(0, |restored| restored.state.len());
        let start = takeover.start.map(|start| start.0);
        let (partition, records, bytes) = (self.partition, takeover.records, takeover.bytes);
        tracing::info!(%partition, entries, records, bytes, start, seconds = took.as_secs_f64(), "restored");
    }

    fn report(&self, report: Report<K>) {
        // A member that has given the partition up does not receive reports any more.
        let _receiver_gone = self.parts.reports.send(WriterReport { partition: self.partition, generation: self.generation, report });
    }
}

/// Returns what is wrong where the brokers refuse a checkpoint because of its time; `None` for any other code.
fn clock_problem(code: RDKafkaErrorCode, partition: Partition, topic: &str) -> Option<String> {
    let hint = hint(code);
    (!hint.is_empty()).then(|| format!("the broker refused a checkpoint of partition {partition} on topic {topic}: {code}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_because_of_a_clock_is_a_problem_of_its_own() {
        let problem = |code| clock_problem(code, Partition(3), "tollgate.state");
        let said = problem(RDKafkaErrorCode::InvalidTimestamp).unwrap();
        assert!(said.contains("a checkpoint of partition 3 on topic tollgate.state") && said.contains("set the clocks"), "{said}");
        // A batch of several records is refused with a code that says less.
        assert!(problem(RDKafkaErrorCode::InvalidRecord).unwrap().contains("compare the clocks"));
        assert_eq!(problem(RDKafkaErrorCode::NotEnoughReplicas), None);
    }
}
