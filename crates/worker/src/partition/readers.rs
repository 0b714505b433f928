//! The readers of takeovers: Kafka clients that takeovers of a member use one after the other.
//!
//! A Kafka client costs milliseconds of CPU and several threads. A member that is assigned many partitions at once would make two readers for
//! each. A few takeovers at a time keep the processor busy as well.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};

use tollgate_config::settings::KafkaSettings;

use crate::kafka::{PlainContext, StageTopics, asker_config, make_consumer, reader_config};

use super::restore_error::RestoreError;

/// How many takeovers have readers before the next takeover waits for those of another one.
const LENT_BEFORE_WAITING: usize = 4;
/// For how long no readers come back before a takeover that waits makes its own: takeovers that hang must not hold up the others.
const PATIENCE: Duration = Duration::from_millis(250);

/// The readers of one takeover.
pub(super) struct Readers {
    /// Reads what is committed.
    pub(super) reader: BaseConsumer<PlainContext>,
    /// Asks for offsets, and reads what is not committed too.
    pub(super) asker: BaseConsumer<PlainContext>,
}

impl Readers {
    /// Makes readers. They connect by themselves.
    fn new(kafka: &KafkaSettings, topics: &StageTopics) -> Result<Self, RestoreError> {
        let failed = |doing| move |error| RestoreError::Kafka { doing, error };
        let reader = make_consumer(&reader_config(kafka, &topics.group_id), PlainContext::default());
        let asker = make_consumer(&asker_config(kafka, &topics.group_id), PlainContext::default());
        Ok(Self {
            reader: reader.map_err(failed("making the reader of the state"))?,
            asker: asker.map_err(failed("making the client that asks for offsets"))?,
        })
    }

    /// Has the readers fetch nothing any more, and returns whether another takeover can use them.
    fn rest(&self) -> bool {
        [&self.reader, &self.asker].into_iter().all(|client| client.unassign().is_ok() && client.client().fatal_error().is_none())
    }
}

/// The readers that the takeovers of a member share. While no takeover goes on there are none: nobody would poll them, and their tokens would
/// run out.
#[derive(Default)]
pub struct SharedReaders {
    pool: Mutex<ReaderPool>,
    came_back: Condvar,
}

#[derive(Default)]
struct ReaderPool {
    idle: Vec<Arc<Readers>>,
    lent: usize,
    /// How often readers came back.
    returns: u64,
}

/// Readers that a takeover has for now. When they are dropped, the next takeover gets them.
pub(super) struct BorrowedReaders {
    readers: Arc<Readers>,
    shared: Arc<SharedReaders>,
}

impl Deref for BorrowedReaders {
    type Target = Readers;

    fn deref(&self) -> &Readers {
        &self.readers
    }
}

impl Drop for BorrowedReaders {
    fn drop(&mut self) {
        let idle = self.readers.rest().then(|| Arc::clone(&self.readers));
        self.shared.take_back(idle);
    }
}

impl SharedReaders {
    /// Returns readers for a takeover: those of an earlier takeover, or new ones. It waits for a while if several takeovers go on.
    ///
    /// # Errors
    /// librdkafka makes no more clients.
    pub(super) fn lend(self: &Arc<Self>, kafka: &KafkaSettings, topics: &StageTopics) -> Result<BorrowedReaders, RestoreError> {
        let readers = match self.take() {
            Some(idle) => idle,
            None => Arc::new(Readers::new(kafka, topics).inspect_err(|_| self.take_back(None))?),
        };
        Ok(BorrowedReaders { readers, shared: Arc::clone(self) })
    }

    /// Takes idle readers, or waits until there are some or it is time to make new ones. Either way a takeover counts as having readers.
    fn take(&self) -> Option<Arc<Readers>> {
        let mut pool = self.pool();
        while pool.idle.is_empty() && pool.lent >= LENT_BEFORE_WAITING {
            let returns = pool.returns;
            let (after, wait) = self.came_back.wait_timeout(pool, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            pool = after;
            if wait.timed_out() && pool.returns == returns {
                break;
            }
        }
        pool.lent += 1;
        pool.idle.pop()
    }

    fn take_back(&self, readers: Option<Arc<Readers>>) {
        let mut pool = self.pool();
        pool.idle.extend(readers);
        pool.lent = pool.lent.saturating_sub(1);
        pool.returns += 1;
        let unused = if pool.lent == 0 { std::mem::take(&mut pool.idle) } else { Vec::new() };
        drop(pool);
        self.came_back.notify_one();
        // librdkafka takes a tenth of a second to end a client. Nobody waits for that.
        drop(unused);
    }

    fn pool(&self) -> MutexGuard<'_, ReaderPool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SharedReaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedReaders").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tollgate_config::settings::Settings;
    use tollgate_core::settings::{defaults, parse};

    fn kafka() -> (KafkaSettings, StageTopics) {
        let kafka = Settings::read(&parse("kafka: {brokers: '127.0.0.1:1'}").unwrap(), &defaults().unwrap()).unwrap().kafka;
        let topics = StageTopics::of(&kafka);
        (kafka, topics)
    }

    fn is_same(lent: &BorrowedReaders, reader: *const Readers) -> bool {
        std::ptr::eq(Arc::as_ptr(&lent.readers), reader)
    }

    #[test]
    fn a_takeover_gets_the_readers_of_another_one_while_takeovers_go_on() {
        let (kafka, topics) = kafka();
        let shared = Arc::new(SharedReaders::default());
        let lend = || shared.lend(&kafka, &topics).unwrap();
        let (goes_on, first) = (lend(), lend());
        let readers = Arc::as_ptr(&first.readers);
        drop(first);
        let second = lend();
        assert!(is_same(&second, readers));
        drop((goes_on, second));
        assert!(shared.pool().idle.is_empty(), "no takeover goes on");
        assert_eq!(shared.pool().lent, 0);
    }

    #[test]
    fn a_takeover_waits_for_readers_and_makes_its_own_where_others_hang() {
        let (kafka, topics) = kafka();
        let shared = Arc::new(SharedReaders::default());
        let lend = || shared.lend(&kafka, &topics).unwrap();
        let mut hanging: Vec<_> = std::iter::repeat_with(lend).take(LENT_BEFORE_WAITING).collect();
        let own = lend();
        assert!(hanging.iter().all(|lent| !is_same(lent, Arc::as_ptr(&own.readers))));
        let ends = hanging.pop().unwrap();
        let readers = Arc::as_ptr(&ends.readers) as usize;
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| is_same(&lend(), readers as *const Readers));
            drop(ends);
            assert!(waits.join().unwrap());
        });
    }
}
