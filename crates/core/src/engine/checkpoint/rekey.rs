//! State that moves to other partitions because its topic has got more of them: where a thread belongs then, and its record there.
//!
//! A thread's record holds two values that mean something only on its partition: the offset of its last event, and the partition's time at
//! that event. Both are carried over as distances: how far the thread is behind the partition's next offset, and how long it has been idle.
//! So threads of one partition stay in order of touch, and none is nearer to its end than before. All other bytes stay as they are.

use crate::engine::wire::{Input, Malformed, Wire};
use crate::event::record::{Offset, Partition, StreamClock, murmur2, partition_of};
use tollgate_json::digest::Digest;

use super::{PartitionState, StateError, VERSION};

/// A change in the number of partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rekey {
    /// How many partitions the state is keyed for.
    pub from: u32,
    /// How many partitions there are.
    pub to: u32,
}

/// Where an entry is, compared with where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is where its key hashes to among the new number of partitions.
    Here,
    /// It is where its key hashed to before, and belongs on this partition.
    Moves(Partition),
    /// Its key hashes to this partition, and never hashed to the one where it is: its producer uses another partitioner.
    Misplaced(Partition),
}

impl Rekey {
    /// Returns the place of an entry that is on a partition.
    #[must_use]
    pub fn place(self, key: &str, at: Partition) -> Place {
        let wanted = partition_of(key.as_bytes(), self.to);
        if wanted == at {
            Place::Here
        } else if partition_of(key.as_bytes(), self.from) == at {
            Place::Moves(wanted)
        } else {
            Place::Misplaced(wanted)
        }
    }
}

/// The note in a partition that its entries are being moved. No worker takes such a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RekeyMark {
    /// For how many partitions the entries were keyed.
    pub from: u32,
    /// For how many they will be keyed.
    pub to: u32,
    /// The sum of all entries of all partitions before the first one was moved; it is the same behind the last one. `None` before it was
    /// taken: nothing was moved yet.
    pub sum: Option<StateSum>,
}

/// What a partition's state says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnRecords {
    /// The partition's own record, if there is one.
    pub state: Option<PartitionState>,
    /// The note that its entries are being moved, if there is one.
    pub mark: Option<RekeyMark>,
}

/// A sum over entries that does not depend on their order or on the partitions where they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateSum {
    /// How many entries there are.
    pub entries: u64,
    pub(super) high: u64,
    pub(super) low: u64,
}

impl StateSum {
    /// Adds an entry.
    pub fn add(&mut self, key: &str, entry: &Portable<'_>) {
        let [high, low] = entry.digest(key);
        self.entries += 1;
        (self.high, self.low) = (self.high.wrapping_add(high), self.low.wrapping_add(low));
    }

    /// Adds the entries of another sum.
    pub fn add_all(&mut self, other: Self) {
        self.entries += other.entries;
        (self.high, self.low) = (self.high.wrapping_add(other.high), self.low.wrapping_add(other.low));
    }
}

/// What the values of a partition's entries are measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The first event that is not in the partition's state.
    pub next: Offset,
    /// The partition's time.
    pub clock: StreamClock,
}

impl From<&PartitionState> for Anchor {
    fn from(state: &PartitionState) -> Self {
        Self { next: state.next, clock: state.clock }
    }
}

/// A thread's record without anything that depends on its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portable<'v> {
    version: u8,
    /// How many offsets before the partition's next one its last event is.
    behind: i64,
    idle_ms: i64,
    /// The rest of the record, in its version.
    rest: &'v [u8],
}

impl<'v> Portable<'v> {
    /// Reads the value of a thread's record that is on the partition of this anchor.
    ///
    /// # Errors
    /// [`StateError::Newer`] or [`StateError::Malformed`]. Only the beginning of the value is looked at.
    pub fn read(value: &'v [u8], at: &Anchor) -> Result<Self, StateError> {
        let (&version, bytes) = value.split_first().ok_or(Malformed::Truncated)?;
        if version > VERSION {
            return Err(StateError::Newer { found: version });
        }
        // Every version begins with the two values that are measured.
        let mut input = Input::new(version.into(), bytes);
        let (applied, touched_ms): (Offset, Option<i64>) = (Wire::read(&mut input)?, Wire::read(&mut input)?);
        let behind = at.next.0.saturating_sub(applied.0);
        Ok(Self { version, behind, idle_ms: at.clock.idle_ms(touched_ms), rest: input.rest() })
    }

    /// Returns the value of the record on the partition of another anchor.
    #[must_use]
    pub fn write(&self, at: &Anchor) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.rest.len() + 32);
        out.push(self.version);
        Offset(at.next.0.saturating_sub(self.behind)).write(&mut out);
        at.clock.now_ms().map(|now_ms| now_ms.saturating_sub(self.idle_ms)).write(&mut out);
        out.extend_from_slice(self.rest);
        out
    }

    fn digest(&self, key: &str) -> [u64; 2] {
        let distances = [self.behind.to_le_bytes(), self.idle_ms.to_le_bytes()];
        let [behind, idle] = &distances;
        let digest = Digest::of_parts(&[key.as_bytes(), &[self.version], behind, idle, self.rest]);
        let half = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        [half(digest.as_bytes().first_chunk()), half(digest.as_bytes().last_chunk())]
    }
}

/// Returns the clock for a partition whose events have reported no time yet, from the clocks of the partitions that its entries come from:
/// the median, so that a single broken one does not decide.
#[must_use]
pub fn adopted_clock(sources: impl IntoIterator<Item = StreamClock>) -> StreamClock {
    let mut times: Vec<i64> = sources.into_iter().filter_map(|clock| clock.now_ms()).collect();
    times.sort_unstable();
    let median = times.get(times.len().saturating_sub(1) / 2).copied();
    StreamClock { began_ms: median, now_ms: median, outvoted: 0 }
}

/// For how many partitions the state of a topic is keyed, as the partitions' own records say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keying {
    /// For as many as there are, or there is no state at all.
    Fits,
    /// For another number.
    Other(u32),
    /// Its entries are being moved.
    Moving(Rekey),
    /// Some partitions name one number, and others another one.
    Mixed(u32, u32),
    /// No partition says it, and some have no state. An older version wrote the records.
    Unknown,
}

impl Keying {
    /// Reads it from the own records of all partitions, in order.
    #[must_use]
    pub fn of(own: &[OwnRecords]) -> Self {
        let count = u32::try_from(own.len()).unwrap_or(u32::MAX);
        if let Some(RekeyMark { from, to, .. }) = own.iter().find_map(|own| own.mark) {
            return Self::Moving(Rekey { from, to });
        }
        let written = || own.iter().filter_map(|own| own.state.as_ref());
        let mut counts = written().filter_map(|state| state.partitions);
        match counts.next() {
            Some(first) => match counts.find(|other| *other != first) {
                Some(other) => Self::Mixed(first, other),
                None if first == count => Self::Fits,
                None => Self::Other(first),
            },
            // Without a partition that has no state, the topic has not grown since the state was written.
            None if written().count() == 0 || written().count() == own.len() => Self::Fits,
            None => Self::Unknown,
        }
    }
}

/// The numbers of partitions that explain where entries are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedFor(Vec<u32>);

impl KeyedFor {
    /// Returns all numbers from one up to another one.
    #[must_use]
    pub fn between(lowest: u32, highest: u32) -> Self {
        Self((lowest.max(1)..=highest).collect())
    }

    /// Drops the numbers under which a key is not on its partition.
    pub fn take(&mut self, key: &str, at: Partition) {
        let positive = murmur2(key.as_bytes()) & 0x7fff_ffff;
        self.0.retain(|count| positive.checked_rem(*count).and_then(|rest| i32::try_from(rest).ok()) == Some(at.0));
    }

    /// Returns the numbers that are left, the lowest first.
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decide::thread::{StoreLimits, StoredThread, Thread, ThreadLimits, ThreadStore, read_thread};
    use crate::engine::checkpoint::{KeyedState, StateRecord, read_rekey};

    const HOUR_MS: i64 = 3_600_000;

    fn clock(now_ms: i64) -> StreamClock {
        StreamClock { began_ms: Some(now_ms - HOUR_MS), now_ms: Some(now_ms), outvoted: 3 }
    }

    fn stored(turn_id: &str, applied: i64, touched_ms: Option<i64>) -> StoredThread {
        let mut thread = Thread { last_event_ms: touched_ms, ..Thread::default() };
        thread.turn.id = Some(turn_id.into());
        thread.turn.memory_mut().suppression.add(Some("c1"), None);
        StoredThread { thread, applied: Offset(applied), touched_ms, ..StoredThread::default() }
    }

    fn value(stored: &StoredThread) -> Vec<u8> {
        StateRecord::entry::<ThreadStore>("t", Some(stored)).value.unwrap()
    }

    fn state(partitions: Option<u32>) -> OwnRecords {
        OwnRecords { state: Some(PartitionState { partitions, ..PartitionState::default() }), mark: None }
    }

    #[test]
    fn a_thread_takes_its_distances_along_and_nothing_else_changes() {
        let before = stored("turn-8", 990, Some(1_000));
        let (old, new) = (Anchor { next: Offset(1_000), clock: clock(61_000) }, Anchor { next: Offset(0), clock: clock(500_000) });
        let value = value(&before);
        let moved = Portable::read(&value, &old).unwrap().write(&new);
        let after = read_thread(&moved).unwrap();
        assert_eq!((after.applied, after.touched_ms), (Offset(-10), Some(440_000)));
        assert_eq!(StoredThread { applied: before.applied, touched_ms: before.touched_ms, ..after }, before);
        assert_eq!(Portable::read(&moved, &new).unwrap().write(&old), value, "and back");
    }

    #[test]
    fn a_thread_without_a_time_is_as_idle_as_the_first_time_said() {
        let value = value(&stored("t", 5, None));
        let old = Anchor { next: Offset(9), clock: clock(HOUR_MS * 4) };
        let new = Anchor { next: Offset(0), clock: clock(HOUR_MS * 9) };
        let moved = read_thread(&Portable::read(&value, &old).unwrap().write(&new)).unwrap();
        assert_eq!(new.clock.idle_ms(moved.touched_ms), HOUR_MS);
        let timeless = Anchor { next: Offset(0), clock: StreamClock::default() };
        assert_eq!(read_thread(&Portable::read(&value, &old).unwrap().write(&timeless)).unwrap().touched_ms, None);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let at = Anchor { next: Offset(0), clock: StreamClock::default() };
        assert_eq!(Portable::read(&[VERSION + 1, 0], &at), Err(StateError::Newer { found: VERSION + 1 }));
        assert_eq!(Portable::read(&[], &at), Err(Malformed::Truncated.into()));
        assert_eq!(Portable::read(&[VERSION, 0x80], &at), Err(Malformed::Truncated.into()));
    }

    #[test]
    fn a_thread_moves_only_from_where_its_key_has_hashed_to() {
        let rekey = Rekey { from: 12, to: 24 };
        for number in 0..200 {
            let key = format!("thread-{number}");
            let (old, new) = (partition_of(key.as_bytes(), 12), partition_of(key.as_bytes(), 24));
            assert_eq!(new.0 % 12, old.0, "a multiple moves to new partitions only");
            assert_eq!(rekey.place(&key, old), if old == new { Place::Here } else { Place::Moves(new) });
            assert_eq!(rekey.place(&key, new), Place::Here);
            let elsewhere = Partition((old.0 + 1) % 12);
            assert_eq!(rekey.place(&key, elsewhere), Place::Misplaced(new));
        }
    }

    #[test]
    fn a_broken_clock_does_not_decide() {
        let year = 365 * 24 * HOUR_MS;
        let adopted = adopted_clock([clock(56 * year), clock(130 * year), StreamClock::default(), clock(56 * year + 5)]);
        assert_eq!((adopted.now_ms(), adopted.idle_ms(None)), (Some(56 * year + 5), 0));
        assert_eq!(adopted_clock([clock(7), clock(5)]).now_ms(), Some(5));
        assert_eq!(adopted_clock([StreamClock::default()]), StreamClock::default());
    }

    #[test]
    fn own_records_say_for_how_many_partitions_the_state_is_keyed() {
        let none = OwnRecords::default;
        assert_eq!(Keying::of(&[none(), none()]), Keying::Fits, "nothing was ever written");
        assert_eq!(Keying::of(&[state(Some(3)), none(), state(Some(3))]), Keying::Fits);
        assert_eq!(Keying::of(&[state(Some(2)), state(Some(2)), none()]), Keying::Other(2));
        assert_eq!(Keying::of(&[state(None), state(Some(2)), none()]), Keying::Other(2), "one that says it speaks for the others");
        assert_eq!(Keying::of(&[state(None), state(None)]), Keying::Fits, "every partition has state");
        assert_eq!(Keying::of(&[state(None), none()]), Keying::Unknown);
        assert_eq!(Keying::of(&[state(Some(2)), state(Some(3)), none()]), Keying::Mixed(2, 3));
        let moving = OwnRecords { mark: Some(RekeyMark { from: 2, to: 3, sum: None }), ..OwnRecords::default() };
        assert_eq!(Keying::of(&[state(Some(2)), state(Some(2)), moving]), Keying::Moving(Rekey { from: 2, to: 3 }));
    }

    #[test]
    fn threads_tell_for_how_many_partitions_they_are_keyed() {
        let mut keyed_for = KeyedFor::between(4, 12);
        (0..200).map(|number| format!("t{number}")).for_each(|key| keyed_for.take(&key, partition_of(key.as_bytes(), 5)));
        assert_eq!(keyed_for.counts(), [5]);
        keyed_for.take("t0", Partition((partition_of(b"t0", 5).0 + 1) % 5));
        assert!(keyed_for.counts().is_empty(), "a misplaced thread fits no number that all others fit");
    }

    #[test]
    fn the_mark_of_a_move_is_kept_in_the_record() {
        let mut sum = StateSum::default();
        let at = Anchor { next: Offset(1), clock: clock(7) };
        sum.add("t", &Portable::read(&value(&stored("t", 0, Some(1))), &at).unwrap());
        let mark = RekeyMark { from: 4, to: 12, sum: Some(sum) };
        let record = StateRecord::rekey(Some(&mark));
        assert_eq!((read_rekey(&record.value.unwrap()), record.key.as_str()), (Ok(mark), "rekey"));
        assert_eq!(StateRecord::rekey(None).value, None);
    }

    fn limits() -> StoreLimits {
        let thread = ThreadLimits { idle_ms_max: HOUR_MS, turn_idle_ms_max: HOUR_MS, bytes_max: 10_000 };
        StoreLimits { threads_max: 1_000, tenant_stops_max: 1_000, thread }
    }

    proptest! {
        /// Whatever the numbers are, every thread ends where its key hashes to, once, with the same idle time, and the sum says so.
        #[test]
        fn all_threads_of_a_topic_move(from in 1..9_u32, more in 1..9_u32, threads in prop::collection::vec((0..5_000_i64, 0..9_000_000_i64), 0..60)) {
            let rekey = Rekey { from, to: from + more };
            let anchor = |partition: i32| Anchor { next: Offset(5_000 * i64::from(partition < from as i32)), clock: clock(9_000_000 + i64::from(partition) * 777) };
            let (mut before, mut after, mut places) = (StateSum::default(), StateSum::default(), std::collections::BTreeMap::new());
            for (number, (applied, touched_ms)) in threads.iter().enumerate() {
                let key = format!("thread-{number}");
                let source = partition_of(key.as_bytes(), from);
                let value = value(&stored(&key, *applied, Some(*touched_ms)));
                let portable = Portable::read(&value, &anchor(source.0)).unwrap();
                before.add(&key, &portable);
                let (target, value) = match rekey.place(&key, source) {
                    Place::Here => (source, value),
                    Place::Moves(target) => (target, portable.write(&anchor(target.0))),
                    Place::Misplaced(_) => panic!("every thread is where its key hashed to"),
                };
                prop_assert_eq!(rekey.place(&key, target), Place::Here);
                after.add(&key, &Portable::read(&value, &anchor(target.0)).unwrap());
                let thread = read_thread(&value).unwrap();
                prop_assert!(thread.applied < anchor(target.0).next, "a restore takes it");
                prop_assert_eq!(anchor(target.0).clock.idle_ms(thread.touched_ms), anchor(source.0).clock.idle_ms(Some(*touched_ms)));
                places.entry(target.0).or_insert_with(Vec::new).push((key.into_boxed_str(), thread));
            }
            prop_assert_eq!(before, after);
            for (partition, threads) in places {
                let count = threads.len();
                let store = <ThreadStore as KeyedState>::restored(limits(), anchor(partition).clock, threads);
                prop_assert_eq!(store.len(), count);
            }
        }
    }
}
