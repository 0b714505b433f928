//! The layout of threads in checkpoints: which fields of every type are written, and in which order; and the store as state that
//! checkpoints can hold.
//!
//! This file, `engine/checkpoint/mod.rs` and the slots of the loop controllers, which have versions of their own, are the format.
//! `engine::wire::layout` gives the rules by which it changes.

use crate::decide::loops::LoopMemory;
use crate::decide::ruling::{Basis, Evidence, GuardrailReason, Reason, Reasons, Ruling, SubjectKind, Suspension};
use crate::decide::thread::{
    Answer, CallRecord, Calls, NewCalls, SeenResponses, StoredThread, Suppression, TenantMark, Thread, Turn, TurnMemory,
};
use crate::engine::checkpoint::{KeyedState, StateError, decode, encode_into};
use crate::engine::wire::{Input, Malformed, Wire, layout, numbers, write_list};
use crate::event::record::{Departures, Offset, StreamClock};

use super::{StoreLimits, ThreadStore};

layout! {
    StoredThread { applied, touched_ms, thread, tenant }
    Thread { last_event_ms, turn }
    Turn { id, started_by, has_ended, earlier, memory, seen }
    SeenResponses { latest, counted_stop }
    TurnMemory { loops, calls, suppression }
    CallRecord { id, tool, args, spelling, call, result, is_open }
    Answer { event, ruling }
    Ruling { reasons, basis }
    GuardrailReason { code, message, policy_id, evidence }
    Suspension { kind, reason }
    Suppression { ids, unnamed_tools, has_unknown, has_overflowed, new_calls, late_calls }
}

numbers! {
    Basis, "a ruling's basis" {
        0 = NotAsked,
        1 = Counted(count),
        2 = NotExecuted,
    }
    Reason, "a reason" {
        0 = Loop { code, count },
        1 = Denied(reason),
        2 = FailedOpen(reason),
        3 = Suppressed,
        4 = ThreadStoreFull,
        5 = Allowed(reason),
        6 = SubjectSuspended(suspension),
        7 = ResponseNotRead,
    }
    Evidence, "what a reason stood on" {
        0 = Passport(digest),
        1 = Answer(digest),
    }
    NewCalls, "what new calls may do" {
        0 = Free,
        1 = CutOff,
        2 = NotRead,
    }
    SubjectKind, "a kind of subject" {
        0 = User,
        1 = Tenant,
        2 = Agent,
        3 = Thread,
    }
}

impl Wire for LoopMemory {
    fn write(&self, out: &mut Vec<u8>) {
        self.holds_a_stop.write(out);
        self.write_slots(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let mut memory = Self { holds_a_stop: Wire::read(input)?, ..Self::BLANK };
        memory.read_slots(input)?;
        Ok(memory)
    }
}

impl Wire for Reasons {
    fn write(&self, out: &mut Vec<u8>) {
        write_list::<Reason>(self, out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Vec::read(input).map(Self::from)
    }
}

impl Wire for TenantMark {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        u64::read(input).map(Self)
    }
}

impl Wire for Calls {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self.records(), out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Vec::read(input).map(Self::of)
    }
}

impl KeyedState for ThreadStore {
    const KIND: &'static str = "thread";
    type Entry = StoredThread;
    type Limits = StoreLimits;

    fn encode(entry: &StoredThread, out: &mut Vec<u8>) {
        encode_into(entry, out);
    }

    fn decode(value: &[u8]) -> Result<StoredThread, StateError> {
        decode(value)
    }

    fn applied(entry: &StoredThread) -> Offset {
        entry.applied
    }

    fn restored(limits: StoreLimits, clock: StreamClock, entries: impl IntoIterator<Item = (Box<str>, StoredThread)>) -> Self {
        Self::restored(limits, clock, entries)
    }

    fn clock(&self) -> StreamClock {
        self.clock()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn departures(&self) -> Departures {
        self.departures()
    }

    fn take_changes(&mut self, show: impl FnMut(&str, Option<&StoredThread>)) {
        self.take_changes(show);
    }

    fn take_change(&mut self, key: &str) -> Option<&StoredThread> {
        self.take_change(key)
    }

    fn mark_changed(&mut self, key: &str) {
        self.mark_changed(key);
    }
}

/// Reads the value of a thread's record.
pub fn read_thread(value: &[u8]) -> Result<StoredThread, StateError> {
    decode(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::loops::ToolCount;
    use crate::engine::checkpoint::VERSION;
    use tollgate_json::digest::Fingerprint;

    fn encoded(value: &impl Wire) -> Vec<u8> {
        let mut out = Vec::new();
        value.write(&mut out);
        out
    }

    fn read<T: Wire>(version: u32, bytes: &[u8]) -> Result<T, Malformed> {
        Input::new(version, bytes).whole()
    }

    /// A record may hold such a slot if another release has written it.
    #[test]
    fn unknown_slots_are_skipped() {
        let [repetition, counting] = slots(&both());
        for (number, version, bytes) in [(3, 1, vec![]), (4_711, 8, vec![0xff; 200]), (59_999, 1, repetition.clone())] {
            let list = [repetition.as_slice(), &Slot { number, version, bytes }.encoded(), &counting].concat();
            assert_eq!(read(VERSION.into(), &[&[1, 3], list.as_slice()].concat()), Ok(both()), "{number}");
        }
    }

    struct Slot {
        number: u64,
        version: u32,
        bytes: Vec<u8>,
    }

    impl Slot {
        fn encoded(&self) -> Vec<u8> {
            let head = [encoded(&self.number), encoded(&self.version), encoded(&(self.bytes.len() as u64))].concat();
            [head, self.bytes.clone()].concat()
        }
    }

    /// Returns the slots of a memory as bytes.
    fn slots(memory: &LoopMemory) -> [Vec<u8>; 2] {
        let repetition = Slot { number: 1, version: 1, bytes: encoded(&memory.repetition) };
        let counting = Slot { number: 60_000, version: 2, bytes: encoded(&memory.counting) };
        [repetition, counting].map(|slot| slot.encoded())
    }

    /// Returns a memory in which both controllers remember something.
    fn both() -> LoopMemory {
        let tool = Fingerprint::of("bash");
        let mut memory = LoopMemory { holds_a_stop: true, ..LoopMemory::BLANK };
        memory.repetition.tools.push(ToolCount { tool, failures: 3 });
        (memory.counting.results, memory.counting.last_tool) = (5, Some(tool));
        memory
    }

    #[test]
    fn a_quiet_turn_has_no_slots() {
        assert_eq!(encoded(&LoopMemory::BLANK), [0, 0]);
        let [repetition, counting] = slots(&both());
        assert_eq!(encoded(&both()), [&[1, 2], repetition.as_slice(), &counting].concat());
    }

    #[test]
    fn a_slot_of_an_older_version_is_read() {
        let slot = Slot { number: 60_000, version: 1, bytes: vec![5] };
        let mut expected = LoopMemory::default();
        expected.counting.results = 5;
        assert_eq!(read(VERSION.into(), &[&[0, 1], slot.encoded().as_slice()].concat()), Ok(expected));
    }

    /// The controller of such a slot begins anew, and the thread still holds its stop.
    #[test]
    fn a_slot_of_a_newer_version_is_skipped() {
        let [repetition, _] = slots(&both());
        let slot = Slot { number: 60_000, version: 3, bytes: b"anything".to_vec() };
        let mut expected = both();
        expected.counting = Default::default();
        assert_eq!(read(VERSION.into(), &[&[1, 2], repetition.as_slice(), &slot.encoded()].concat()), Ok(expected));
    }

    #[test]
    fn slots_that_nothing_writes_are_refused() {
        let slot = |number, version, bytes: &[u8]| Slot { number, version, bytes: bytes.to_vec() }.encoded();
        let read = |slots: &[Vec<u8>]| read::<LoopMemory>(VERSION.into(), &[vec![0, slots.len() as u8], slots.concat()].concat());
        let invalid = Err(Malformed::Invalid("a loop controller's slot"));
        assert_eq!(read(&[slot(1, 1, &[0, 0]), slot(1, 1, &[0, 0])]), invalid, "twice");
        assert_eq!(read(&[slot(7, 1, b""), slot(1, 1, &[0, 0])]), invalid, "out of order");
        assert_eq!(read(&[slot(7, 0, b"")]), invalid, "version 0");
        assert_eq!(read(&[slot(1, 1, &[0, 0, 9])]), Err(Malformed::Trailing(1)));
        assert_eq!(read(&[slot(1, 1, &[0])]), Err(Malformed::Truncated));
    }
}
