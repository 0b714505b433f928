//! A scan of the state of all partitions: which thread is where, and where it belongs. A scan fails if a partition cannot be read, or holds
//! something that is not state.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{anyhow, bail};

use tollgate_core::decide::thread::{StoredThread, ThreadStore};
use tollgate_core::engine::checkpoint::{
    Anchor, KeyedFor, KeyedState, Latest, OwnRecords, PartitionState, Place, Portable, Rekey, StateError, StateKey, StateSum, adopted_clock,
};
use tollgate_core::event::record::{Offset, Partition, StreamClock};
use tollgate_worker::partition::read_to_end;

use super::{Job, Misplaced, offline};

/// How many misplaced threads are named.
const SAMPLES: usize = 3;

/// What there is of a kind of threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Threads.
    pub threads: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Threads that hold a block or a halt of their running turn.
    pub stops: u64,
    /// Threads of which calls are suppressed.
    pub suppressions: u64,
}

/// A partition in a placement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartitionPlacement {
    /// Threads that are there.
    pub threads: u64,
    /// Threads that leave.
    pub leaving: Tally,
    /// Threads that come.
    pub arriving: Tally,
    /// Threads whose id never hashed to the partition.
    pub misplaced: u64,
}

/// Two partitions that know one thread, which belongs on one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) thread_id: Box<str>,
    pub(super) kept: Partition,
    pub(super) dropped: Partition,
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { thread_id, kept, dropped } = self;
        write!(f, "{thread_id}: {kept} has the later event, {dropped} the earlier one")
    }
}

/// What is where, and where it belongs.
#[derive(Debug)]
pub struct Placement {
    /// The change of the number of partitions.
    pub rekey: Rekey,
    pub(super) own: Vec<OwnRecords>,
    /// Every partition, in order.
    pub partitions: Vec<PartitionPlacement>,
    /// The sum of all threads that are kept.
    pub(super) sum: StateSum,
    pub(super) conflicts: Vec<Conflict>,
    pub(super) misplaced_samples: Vec<String>,
    /// From which partitions threads come to each.
    sources: BTreeMap<Partition, HashSet<Partition>>,
}

/// A thread's newest record.
pub(super) struct NewestRecord {
    pub(super) value: Vec<u8>,
    last_event_ms: Option<i64>,
    tally: Tally,
}

/// A thread that was seen, by the partition where it will be.
struct PlacedThread {
    at: Partition,
    /// What decides which of two copies is kept.
    rank: (Option<i64>, u64, Partition),
    sum: StateSum,
}

/// Returns where a thread will be.
pub(super) fn destination(job: &Job<'_>, rekey: Rekey, key: &str, at: Partition) -> Partition {
    match rekey.place(key, at) {
        Place::Here => at,
        Place::Moves(target) => target,
        Place::Misplaced(target) => {
            if job.options.misplaced == Some(Misplaced::Move) {
                target
            } else {
                at
            }
        }
    }
}

/// Reads a partition: the newest record of each thread.
pub(super) fn threads(job: &Job<'_>, partition: Partition) -> anyhow::Result<Vec<(Box<str>, NewestRecord)>> {
    let mut latest = Latest::default();
    let read = read_to_end(&job.reader, &job.topics.state, partition, |offset, _, key, value| {
        latest.take::<ThreadStore>(offset, key, value, |_, bytes, stored| NewestRecord::new(value.unwrap_or_default(), bytes, &stored));
        true
    });
    read.map_err(|error| job.unreadable(&error))?;
    let topic = &job.topics.state;
    if let Some((offset, error)) = latest.take_unreadable().into_iter().next() {
        bail!("partition {partition} of {topic}, record at offset {offset}: {error}");
    }
    if latest.partition.is_none() && latest.mark.is_none() && !latest.entries.is_empty() {
        let error = StateError::NoPartition { entries: latest.entries.len(), kind: ThreadStore::KIND };
        bail!("partition {partition} of {topic}: {error}");
    }
    Ok(latest.entries.into_iter().collect())
}

impl NewestRecord {
    fn new(value: &[u8], bytes: usize, stored: &StoredThread) -> Self {
        let thread = &stored.thread;
        let tally = Tally {
            threads: 1,
            bytes: bytes as u64,
            stops: thread.holds_a_stop().into(),
            suppressions: (!thread.turn.memory().suppression.is_empty()).into(),
        };
        Self { value: value.to_vec(), last_event_ms: thread.last_event_ms, tally }
    }
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.threads += other.threads;
        self.bytes += other.bytes;
        self.stops += other.stops;
        self.suppressions += other.suppressions;
    }
}

/// Scans all partitions.
pub(super) fn read(job: &Job<'_>, rekey: Rekey, own: Vec<OwnRecords>) -> anyhow::Result<Placement> {
    let mut placement = Placement {
        rekey,
        partitions: vec![PartitionPlacement::default(); own.len()],
        own,
        sum: StateSum::default(),
        conflicts: Vec::new(),
        misplaced_samples: Vec::new(),
        sources: BTreeMap::new(),
    };
    let mut seen: HashMap<(Partition, Box<str>), PlacedThread> = HashMap::new();
    for at in job.partitions.iter().copied() {
        let threads = threads(job, at)?;
        if threads.is_empty() {
            continue;
        }
        let anchor = placement.anchor_of(at)?;
        for (key, taken) in threads {
            let target = destination(job, rekey, &key, at);
            placement.count(&key, at, target, &taken);
            let portable = Portable::read(&taken.value, &anchor).map_err(|error| anyhow!("partition {at}, a thread's record: {error}"))?;
            let mut sum = StateSum::default();
            sum.add(&key, &portable);
            let new = PlacedThread { at, rank: (taken.last_event_ms, taken.tally.stops, at), sum };
            match seen.entry((target, key)) {
                Entry::Vacant(vacant) => _ = vacant.insert(new),
                Entry::Occupied(mut occupied) => {
                    let is_newer = new.rank > occupied.get().rank;
                    let (kept, dropped) = if is_newer { (at, occupied.get().at) } else { (occupied.get().at, at) };
                    placement.conflicts.push(Conflict { thread_id: occupied.key().1.clone(), kept, dropped });
                    if is_newer {
                        occupied.insert(new);
                    }
                }
            }
        }
    }
    seen.values().for_each(|seen| placement.sum.add_all(seen.sum));
    Ok(placement)
}

/// Returns the numbers of partitions that explain where all threads are.
pub(super) fn fitting(job: &Job<'_>, own: &[OwnRecords]) -> anyhow::Result<Vec<u32>> {
    let last = own.iter().rposition(|own| own.state.is_some()).unwrap_or_default();
    let mut keyed_for = KeyedFor::between(u32::try_from(last)?.saturating_add(1), job.count());
    for partition in job.partitions.iter().copied() {
        let read = read_to_end(&job.reader, &job.topics.state, partition, |_, _, key, value| {
            if let (Ok(StateKey::Entry(id)), Some(_)) = (StateKey::read(key, ThreadStore::KIND), value) {
                keyed_for.take(id, partition);
            }
            true
        });
        read.map_err(|error| job.unreadable(&error))?;
    }
    Ok(keyed_for.counts().to_vec())
}

impl Placement {
    /// Returns how many threads will move.
    pub(super) fn to_move(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.leaving.threads).sum()
    }

    /// Returns how many threads are misplaced.
    #[must_use]
    pub fn misplaced(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.misplaced).sum()
    }

    /// Returns the sums of what will move.
    #[must_use]
    pub fn moving(&self) -> Tally {
        let mut tally = Tally::default();
        self.partitions.iter().for_each(|partition| tally.add(partition.leaving));
        tally
    }

    /// Returns what the threads of a partition are measured against.
    pub(super) fn anchor_of(&self, partition: Partition) -> anyhow::Result<Anchor> {
        let own = usize::try_from(partition.0).ok().and_then(|number| self.own.get(number));
        let state = own.and_then(|own| own.state.as_ref());
        state
            .map(Anchor::from)
            .ok_or_else(|| anyhow!("partition {partition} has threads and no own record: the topic is not what tollgate left there"))
    }

    fn placed(&mut self, partition: Partition) -> Option<&mut PartitionPlacement> {
        self.partitions.get_mut(usize::try_from(partition.0).ok()?)
    }

    fn count(&mut self, key: &str, at: Partition, target: Partition, taken: &NewestRecord) {
        if let Place::Misplaced(wanted) = self.rekey.place(key, at) {
            if self.misplaced_samples.len() < SAMPLES {
                self.misplaced_samples.push(format!("{key} on {at}, and not on {wanted}"));
            }
            self.placed(at).into_iter().for_each(|placed| placed.misplaced += 1);
        }
        self.placed(at).into_iter().for_each(|placed| placed.threads += 1);
        if target != at {
            self.placed(at).into_iter().for_each(|placed| placed.leaving.add(taken.tally));
            self.placed(target).into_iter().for_each(|placed| placed.arriving.add(taken.tally));
            self.sources.entry(target).or_default().insert(at);
        }
    }

    /// Gives every partition an own record and, where threads come to one whose events have told no time yet, a clock.
    ///
    /// # Errors
    /// The brokers do not say where events begin.
    pub(super) fn anchor(&mut self, job: &Job<'_>, rekey: Rekey) -> anyhow::Result<()> {
        let clocks: Vec<StreamClock> =
            self.own.iter().map(|own| own.state.as_ref().map_or_else(StreamClock::default, |state| state.clock)).collect();
        let committed = offline::committed(job)?;
        for (number, partition) in job.partitions.iter().copied().enumerate() {
            let clock_of = |source: &Partition| usize::try_from(source.0).ok().and_then(|source| clocks.get(source)).copied();
            let adopted = adopted_clock(self.sources.get(&partition).into_iter().flatten().filter_map(clock_of));
            let Some(own) = self.own.get_mut(number) else { continue };
            if own.state.is_none() {
                let next = match committed.get(&partition) {
                    Some(committed) => committed.offset,
                    None if (number as u64) < u64::from(rekey.from) => offline::low(job, partition)?,
                    // Everything on a new partition is to be decided.
                    None => Offset(0),
                };
                own.state = Some(PartitionState { owner: job.topics.owner(), next, ..PartitionState::default() });
            }
            if let Some(state) = own.state.as_mut().filter(|state| state.clock.now_ms().is_none()) {
                state.clock = adopted;
            }
        }
        Ok(())
    }
}
