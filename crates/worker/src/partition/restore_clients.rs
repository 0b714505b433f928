//! The Kafka clients of a takeover: the producer that fences the last owner, and the readers of state and offsets.

use std::sync::Arc;
use std::time::Duration;

use tollgate_config::settings::KafkaSettings;
use tollgate_core::event::record::Partition;

use crate::kafka::StageTopics;
use crate::metrics::Metrics;

use super::readers::{BorrowedReaders, SharedReaders};
use super::restore_error::RestoreError;
use super::transaction::Transactions;

/// What a restore works with.
#[derive(Debug, Clone)]
pub(super) struct RestoreParts<'p> {
    pub(super) kafka: &'p KafkaSettings,
    pub(super) topics: &'p Arc<StageTopics>,
    pub(super) partition: Partition,
    pub(super) batch_bytes_max: u64,
    pub(super) metrics: &'p Metrics,
    /// The readers that the member's takeovers share.
    pub(super) readers: &'p Arc<SharedReaders>,
}

/// The clients of a takeover. They outlive a failed attempt, because connections and coordinators that were found need not be found again.
pub(super) struct Clients {
    pub(super) transactions: Transactions,
    pub(super) readers: BorrowedReaders,
    /// Whether the earlier owners are fenced already.
    has_fenced: bool,
    /// Whether a transaction failed, so that the next attempt needs another producer.
    pub(super) is_spent: bool,
    /// How often the end of a transaction did not come in time.
    pub(super) slow_marks: u32,
}

impl Clients {
    /// Makes the clients. They connect by themselves.
    pub(super) fn new(parts: &RestoreParts<'_>) -> Result<Self, RestoreError> {
        let RestoreParts { kafka, topics, partition, batch_bytes_max, readers, .. } = parts;
        let failed = |error| RestoreError::Kafka { doing: "making the producer of the state", error };
        let transactions = Transactions::new(kafka, topics, *partition, *batch_bytes_max).map_err(failed)?;
        Ok(Self { transactions, readers: readers.lend(kafka, topics)?, has_fenced: false, is_spent: false, slow_marks: 0 })
    }

    /// Returns the producer of checkpoints, and gives the readers back.
    pub(super) fn into_transactions(self) -> Transactions {
        self.transactions
    }

    /// Serves the clients, which nobody polls between two attempts. The request for a token comes before everything else; if the first token
    /// could not be got, librdkafka asks again ten seconds later, and without an answer it would connect to nothing.
    pub(super) fn serve(&self) {
        self.transactions.serve();
        // The next attempt reads from the beginning, so a record that comes now is not missed.
        let _event = self.readers.reader.poll(Duration::ZERO);
        let _event = self.readers.asker.poll(Duration::ZERO);
    }

    /// Returns whether another attempt can be made with these clients.
    pub(super) fn are_usable(&self) -> bool {
        !self.is_spent && !self.transactions.has_failed()
    }

    /// Fences the earlier owners, unless that is done. Returns `false` if the state is not wanted any more: a member that no longer owns the
    /// partition must not fence the next owner.
    pub(super) fn fence(&mut self, is_wanted: impl Fn() -> bool) -> Result<bool, RestoreError> {
        let failed = |doing| move |error| RestoreError::Kafka { doing, error };
        if !self.has_fenced {
            self.transactions.connect().map_err(failed("connecting to the brokers of the state"))?;
            if !is_wanted() {
                return Ok(false);
            }
            self.transactions.fence().map_err(failed("taking the state over from its last owner"))?;
            self.has_fenced = true;
        }
        Ok(true)
    }
}
