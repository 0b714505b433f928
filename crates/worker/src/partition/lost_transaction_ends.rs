//! What a takeover does where the brokers have lost the mark that ends a transaction of the state.
//!
//! The coordinator of a transaction writes a mark to each of its partitions: committed or aborted. If a partition has no leader at that time,
//! Kafka (seen in 4.3.1) takes it for deleted and writes none. It happens when a broker is started again after a crash, and when all replicas
//! in sync are away. The transaction then counts as ended for the coordinator and as open for the partition, and nobody who reads what is
//! committed gets beyond it. The next mark for the same producer ends both: a commit makes all of it valid, an abort nothing.
//!
//! Whoever takes the state over has fenced the last owner, so that the coordinator knows of no open transaction of this partition's producer.
//! What is open all the same has lost its mark, or belongs to somebody else. An aborted transaction of our own ends the former. If it was to be
//! committed, the group's offset says so: it is committed in the same transaction, and is then ahead of the state. The checkpoint is still in
//! the log, though marked as aborted, and is written again. The same holds where the last owner began another transaction, whose abort has
//! taken the checkpoint with it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rdkafka::Offset as KafkaOffset;
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;

use tollgate_core::engine::checkpoint::{CheckpointSearch, KeyedState, StateRecord};
use tollgate_core::event::record::Offset;

use super::reading::{ends, read_messages};
use super::restore_clients::{Clients, RestoreParts};
use super::restore_error::RestoreError;

/// For how long a transaction may look open before it is ended: one that another owner is just writing looks so too.
const OPEN_TIME: Duration = Duration::from_millis(200);
/// How long the brokers may take to write a mark after they have accepted the end of a transaction.
const MARK_TIMEOUT: Duration = Duration::from_secs(3);
/// How often that may take longer before what is open is taken for somebody else's.
const SLOW_MARKS_MAX: u32 = 2;
const MARK_POLL: Duration = Duration::from_millis(10);

/// Lost marks of a partition's state, and the clients to mend them with.
pub(super) struct LostTransactionEnds<'l, 'p> {
    pub(super) parts: &'l RestoreParts<'p>,
    pub(super) clients: &'l mut Clients,
}

impl LostTransactionEnds<'_, '_> {
    /// Aborts what counts as open for the partition and has ended for its coordinator.
    pub(super) fn abort_open(&mut self) -> Result<(), RestoreError> {
        let Some((from, end)) = self.still_open(OPEN_TIME)? else { return Ok(()) };
        self.write(&[StateRecord::filler()], false)?;
        let partition = self.parts.partition;
        tracing::warn!(%partition, from = from.0, end = end.0, "the brokers have lost the end of a transaction of the state; it is aborted now");
        Ok(())
    }

    /// Writes the checkpoints that lead from the state as of `seen` to a committed offset again, if they are still in the log. Returns whether
    /// they are.
    pub(super) fn write_again<K: KeyedState>(
        &mut self,
        seen: Option<Offset>,
        committed: Offset,
        is_wanted: impl Fn() -> bool,
    ) -> Result<bool, RestoreError> {
        let RestoreParts { topics, partition, .. } = self.parts;
        let mut search = CheckpointSearch::<K>::new(seen, committed);
        let asker = &self.clients.readers.asker;
        let read = read_messages(asker, &topics.state, *partition, KafkaOffset::Beginning, |message| {
            search.take(Offset(message.offset()), message.key(), message.payload());
            is_wanted()
        });
        asker.unassign().map_err(failed)?;
        let Some(records) = search.finish().filter(|_| matches!(read, Ok(true))) else { return read.map(|_| false) };
        self.write(&records, true)?;
        let count = records.len();
        tracing::warn!(%partition, committed = committed.0, records = count, "the brokers have lost the commit of a checkpoint; it is written again");
        Ok(true)
    }

    /// Writes records in a transaction, and waits until the partition has its mark.
    fn write(&mut self, records: &[StateRecord], is_committed: bool) -> Result<(), RestoreError> {
        let written = self.clients.transactions.write_alone(records, is_committed);
        self.clients.is_spent = written.is_err();
        written.map_err(|error| if self.clients.transactions.is_fenced(&error) { RestoreError::Fenced } else { failed(error) })?;
        let Some((from, end)) = self.still_open(MARK_TIMEOUT)? else { return Ok(()) };
        self.clients.slow_marks += 1;
        if self.clients.slow_marks <= SLOW_MARKS_MAX {
            return Err(failed(KafkaError::Global(RDKafkaErrorCode::OperationTimedOut)));
        }
        Err(RestoreError::Open { from, end })
    }

    /// Returns from where to where the partition's records belong to transactions that have not ended, if that stays so for this long; `None`
    /// as soon as none do.
    fn still_open(&self, time: Duration) -> Result<Option<(Offset, Offset)>, RestoreError> {
        let RestoreParts { topics, partition, .. } = self.parts;
        let deadline = Instant::now() + time;
        loop {
            let (_, committed) = ends(&self.clients.readers.reader, &topics.state, *partition)?;
            let (_, end) = ends(&self.clients.readers.asker, &topics.state, *partition)?;
            if committed >= end {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                return Ok(Some((committed, end)));
            }
            sleep(MARK_POLL);
        }
    }
}

fn failed(error: KafkaError) -> RestoreError {
    RestoreError::Kafka { doing: "ending a transaction of the state whose end the brokers have lost", error }
}
