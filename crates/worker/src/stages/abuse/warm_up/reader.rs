//! The thread that reads the log of a partition for a warm-up.
//!
//! One thread of the process reads at a time, so that a change of the rules takes one core from deciding and not one for each partition. It
//! keeps its turn until its rules are in force, so that one warm-up is in memory at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};
use tollgate_abuse::WarmUp;
use tollgate_core::event::record::{Offset, Partition};

use crate::kafka::{PlainContext, StageTopics, make_consumer, reader_config, with_record};
use crate::partition::{Failures, Owner, RestoreError, Wanted, ends, read_messages};
use crate::threads::Threads;
use tollgate_config::settings::KafkaSettings;

/// How long the brokers may take to say which offset belongs to a time.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest pause before reading is tried again, each time with a new client. Nobody waits for it.
const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);
/// How often it is logged that reading keeps failing.
const FAILURE_REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// How often it is logged how far the reader is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(60);
/// How often to check whether it is this reader's turn.
const TURN_POLL: Duration = Duration::from_millis(50);

/// What the readers of a process share.
#[derive(Debug)]
pub(in super::super) struct ReaderParts {
    kafka: Arc<KafkaSettings>,
    topics: Arc<StageTopics>,
    /// The threads of the process, which show one that panicked.
    threads: Arc<Threads>,
    /// Held by the one that reads.
    turn: Mutex<()>,
}

/// A thread that reads the log for a warm-up. When it is dropped, it ends soon.
#[derive(Debug)]
pub(super) struct LogReader {
    /// What the thread asks whether it is wanted. It is dropped before the channels.
    _owner: Owner,
    /// The offset of the last record that the partition has applied, which the thread is told.
    applied: Arc<AtomicI64>,
    offers: Receiver<Box<WarmUp>>,
    returns: Sender<Box<WarmUp>>,
}

impl ReaderParts {
    pub(in super::super) fn new(kafka: &Arc<KafkaSettings>, topics: &Arc<StageTopics>, threads: &Arc<Threads>) -> Self {
        Self { kafka: Arc::clone(kafka), topics: Arc::clone(topics), threads: Arc::clone(threads), turn: Mutex::new(()) }
    }

    /// Notes that a partition's reader runs again, or is not needed any more.
    pub(super) fn recovered(&self, partition: Partition) {
        self.threads.recovered(&thread(partition));
    }
}

/// Returns the name of the thread that reads a partition's log.
fn thread(partition: Partition) -> String {
    format!("abuse-warm-up-{partition}")
}

impl LogReader {
    /// Starts to read the log of a partition that has applied the record at an offset.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub(super) fn start(parts: &Arc<ReaderParts>, partition: Partition, applied: Offset, warm_up: Box<WarmUp>) -> std::io::Result<Self> {
        let ((offer, offers), (returns, given_back)) = (channel(), channel());
        let (owner, applied) = (Owner::default(), Arc::new(AtomicI64::new(applied.0)));
        let work = Work { parts: Arc::clone(parts), partition, wanted: owner.wanted(), applied: Arc::clone(&applied), offer, given_back };
        let run = move || {
            let _log = work.parts.topics.enter_log();
            let ran = catch_unwind(AssertUnwindSafe(|| work.run(warm_up)));
            if ran.is_err() && work.wanted.is_wanted() {
                // The member learns it from the channel, and starts another one.
                work.parts.threads.panicked(&thread(partition));
                if !work.wanted.is_wanted() {
                    // It was given up meanwhile, and nobody would take that back.
                    work.parts.recovered(partition);
                }
            }
        };
        std::thread::Builder::new().name(thread(partition)).spawn(run)?;
        Ok(Self { _owner: owner, applied, offers, returns })
    }

    /// Shows the thread how far the partition is.
    pub(super) fn show_applied(&self, offset: Offset) {
        self.applied.store(offset.0, Ordering::Relaxed);
    }

    /// Returns the warm-up if it is where the partition is.
    ///
    /// # Errors
    /// It is not there yet, or the thread has ended.
    pub(super) fn offered(&self) -> Result<Box<WarmUp>, TryRecvError> {
        self.offers.try_recv()
    }

    /// Gives a warm-up back to be shown more of the log.
    pub(super) fn give_back(&self, warm_up: Box<WarmUp>) {
        let _sent = self.returns.send(warm_up);
    }
}

struct Work {
    parts: Arc<ReaderParts>,
    partition: Partition,
    wanted: Wanted,
    applied: Arc<AtomicI64>,
    offer: Sender<Box<WarmUp>>,
    given_back: Receiver<Box<WarmUp>>,
}

impl Work {
    /// Reads until the partition has taken the warm-up in, or does not want it any more.
    fn run(&self, mut warm_up: Box<WarmUp>) {
        let mut failures = Failures::new(FAILURE_REPORT_INTERVAL);
        while let Some(turn) = self.turn() {
            if let Err(error) = self.read(&mut warm_up) {
                drop(turn);
                if failures.is_report_due(&error, Instant::now()) {
                    tracing::warn!(partition = %self.partition, %error, "the log could not be read for rules that are new; trying again");
                }
                if !self.wanted.wait(failures.pause(&error).max(RETRY_PAUSE_MIN)) {
                    return;
                }
                continue;
            }
            if !self.wanted.is_wanted() {
                return;
            }
            failures = Failures::new(FAILURE_REPORT_INTERVAL);
            match self.hand_over(warm_up) {
                Some(given_back) => warm_up = given_back,
                None => return,
            }
        }
    }

    /// Returns the turn to read; `None` if the warm-up is not wanted any more.
    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        while self.wanted.is_wanted() {
            match self.parts.turn.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::sleep(TURN_POLL),
            }
        }
        None
    }

    /// Offers the warm-up, and returns it if it is given back; `None` once its rules are in force or nobody wants it any more.
    fn hand_over(&self, warm_up: Box<WarmUp>) -> Option<Box<WarmUp>> {
        let (partition, next) = (self.partition, warm_up.next());
        tracing::debug!(%partition, %next, "the log is read up to where the partition is");
        self.offer.send(warm_up).ok()?;
        self.given_back.recv().ok()
    }

    /// Reads on until the log ends, the partition is reached, or nobody wants it any more.
    fn read(&self, warm_up: &mut WarmUp) -> Result<(), RestoreError> {
        let ReaderParts { kafka, topics, .. } = &*self.parts;
        let failed = |doing| move |error| RestoreError::Kafka { doing, error };
        let reader = make_consumer(&reader_config(kafka, &topics.group_id), PlainContext::default())
            .map_err(failed("making the reader of the signals"))?;
        let (low, end) = ends(&reader, &topics.input, self.partition)?;
        if warm_up.next() == Offset(0) {
            let asked = warm_up.from_ms().map(|from_ms| offset_of_time(&reader, topics, self.partition, from_ms));
            // Where no record is as late, there is none that is needed.
            let begin = asked.transpose().map_err(failed("asking for the offset of a time"))?.map_or(low, |begin| begin.unwrap_or(end));
            warm_up.begin_at(begin);
        }
        // What is not there any more is not waited for.
        warm_up.begin_at(low);
        if warm_up.next() >= end {
            return Ok(());
        }
        let (begin, mut reported) = (KafkaOffset::Offset(warm_up.next().0), Instant::now());
        let is_at_end = read_messages(&reader, &topics.input, self.partition, begin, |message| {
            fail::fail_point!("warm-up");
            with_record(message, |record, rejection| match rejection {
                None => warm_up.fold(record),
                Some(_) => warm_up.begin_at(Offset(record.offset.0.saturating_add(1))),
            });
            if reported.elapsed() >= PROGRESS_INTERVAL {
                reported = Instant::now();
                let (partition, next) = (self.partition, warm_up.next());
                tracing::info!(%partition, %next, %end, "the log is read for rules that are new");
            }
            self.wanted.is_wanted() && warm_up.next().0 <= self.applied.load(Ordering::Relaxed)
        })?;
        if is_at_end {
            warm_up.begin_at(end);
        }
        Ok(())
    }
}

/// Returns the offset of the first record of a time or later; `None` if there is none.
fn offset_of_time(
    reader: &BaseConsumer<PlainContext>,
    topics: &StageTopics,
    partition: Partition,
    time_ms: i64,
) -> KafkaResult<Option<Offset>> {
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition_offset(&topics.input, partition.0, KafkaOffset::Offset(time_ms.max(0)))?;
    let answered = reader.offsets_for_times(list, QUESTION_TIMEOUT)?;
    let Some(element) = answered.find_partition(&topics.input, partition.0) else { return Ok(None) };
    element.error()?;
    Ok(match element.offset() {
        KafkaOffset::Offset(offset) => Some(Offset(offset)),
        _ => None,
    })
}
