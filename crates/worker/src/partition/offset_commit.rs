//! The step of a checkpoint that librdkafka may hang in: adding the offset to the transaction.
//!
//! The request goes to the coordinator of the group. While that moves, librdkafka (seen in 2.12) asks a few times where it is, and then waits
//! until some connection of the producer comes up or goes down, whatever timeout it was given: for many minutes on a quiet cluster. So the
//! step has a thread of its own, and whoever asked for it can give it up.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::producer::{BaseProducer, Producer, ProducerContext};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};
use tollgate_core::engine::checkpoint::Checkpoint;
use tollgate_core::event::record::Partition;

use super::state_producer::{STEP_TIMEOUT, repeat_step};

/// How long the step may take. The brokers need milliseconds, and seconds while the coordinator is replaced.
const HANG_MAX: Duration = Duration::from_secs(6);
/// How much longer a step is waited for. A process that was frozen finds its time used up though the answer is about to come.
const GRACE: Duration = Duration::from_secs(1);

/// The mark beside an offset that was committed with state. With it, a start without that state is noticed.
pub(super) const COMMIT_MARK: &str = "tollgate state";

/// A checkpoint to write, with the group metadata to commit it under.
pub struct Job {
    /// The checkpoint.
    pub checkpoint: Arc<Checkpoint>,
    /// The member's group metadata. With it the broker refuses a member that the group has already replaced.
    pub group: ConsumerGroupMetadata,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("next", &self.checkpoint.next).finish_non_exhaustive()
    }
}

/// The thread that adds offsets to a producer's transactions. It ends with this value, or else as soon as librdkafka returns.
pub(super) struct OffsetCommit {
    jobs: Sender<Arc<Job>>,
    answers: Receiver<KafkaResult<()>>,
}

impl OffsetCommit {
    /// Starts the thread. `input` is the topic whose offsets are committed.
    pub(super) fn start<C>(producer: Arc<BaseProducer<C>>, input: &str, partition: Partition) -> KafkaResult<Self>
    where
        C: ProducerContext + 'static,
    {
        let (jobs, wanted) = channel::<Arc<Job>>();
        let (answer, answers) = channel();
        let input = input.to_owned();
        let run = move || {
            for job in wanted {
                // Nobody listens any more once the step was given up.
                if answer.send(add(&producer, &input, partition, &job)).is_err() {
                    return;
                }
            }
        };
        let started = std::thread::Builder::new().name(format!("offset-{partition}")).spawn(run);
        started.map_err(|error| KafkaError::ClientCreation(format!("no thread for the offsets of partition {partition}: {error}")))?;
        Ok(Self { jobs, answers })
    }

    /// Adds the offset of a checkpoint to the transaction. Returns `None` if librdkafka hangs: the producer is of no use then.
    pub(super) fn take(&self, job: &Arc<Job>) -> Option<KafkaResult<()>> {
        self.jobs.send(Arc::clone(job)).ok()?;
        match self.answers.recv_timeout(HANG_MAX) {
            Err(RecvTimeoutError::Timeout) => self.answers.recv_timeout(GRACE).ok(),
            answer => answer.ok(),
        }
    }
}

fn add<C: ProducerContext>(producer: &BaseProducer<C>, input: &str, partition: Partition, job: &Job) -> KafkaResult<()> {
    let mut offsets = TopicPartitionList::with_capacity(1);
    let mut element = offsets.add_partition(input, partition.0);
    element.set_offset(KafkaOffset::Offset(job.checkpoint.next.0))?;
    element.set_metadata(COMMIT_MARK);
    repeat_step(|| producer.send_offsets_to_transaction(&offsets, &job.group, STEP_TIMEOUT))
}
