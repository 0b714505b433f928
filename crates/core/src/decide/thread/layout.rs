//! The layout of threads in checkpoints: which fields of every type are written, and in which order; and the store as state that
//! checkpoints can hold.
//!
//! This file, `engine/checkpoint/mod.rs` and the slots of the loop controllers, which have versions of their own, are the format.
//! `engine::wire::layout` gives the rules by which it changes.

use crate::decide::loops::LoopMemory;
use crate::decide::ruling::{Basis, Evidence, GuardrailReason, Reason, Reasons, Ruling, SubjectKind, Suspension};
use crate::decide::thread::{
    Answer, CallRecord, Calls, Counted, NewCalls, StoredThread, Suppression, TenantMark, Thread, Turn, TurnMemory,
};
use crate::engine::checkpoint::{KeyedState, StateError, decode, encode_into};
use crate::engine::wire::{Input, Malformed, Wire, layout, numbers, write_list};
use crate::event::record::{Departures, Offset, StreamClock};

use super::{StoreLimits, ThreadStore};

layout! {
    StoredThread { applied, touched_ms, thread, tenant }
    Thread { last_event_ms, turn }
    Turn { id, started_by, has_ended, earlier, memory, counted }
    Counted { response, safety_stop }
    TurnMemory { loops, calls, suppression }
    CallRecord { id, tool, args, spelling, call, result, is_open }
    Answer { event, ruling }
    Ruling { reasons, basis }
    GuardrailReason { code, message, policy_id, evidence }
    Suspension { kind, reason }
    Suppression { ids, unnamed_tools, has_unknown, has_overflowed, new_calls }
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
        1 = CutOffWithoutIds,
        2 = CutOff,
        3 = NotRead,
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
    use std::num::NonZeroU32;

    use super::*;
    use crate::decide::loops::{Attempt, Marks, Refusal, RepetitionMemory, SignatureCount, Step, StepMemory, Tally, ToolCount};
    use crate::decide::ruling::LoopCode;
    use crate::engine::checkpoint::VERSION;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use tollgate_json::digest::{Digest, Fingerprint};

    fn encoded(value: &impl Wire) -> Vec<u8> {
        let mut out = Vec::new();
        value.write(&mut out);
        out
    }

    fn read<T: Wire>(version: u32, bytes: &[u8]) -> Result<T, Malformed> {
        Input::new(version, bytes).whole()
    }

    fn fingerprint() -> impl Strategy<Value = Fingerprint> {
        any::<[u8; 16]>().prop_map(Fingerprint::from_bytes)
    }

    fn digest() -> impl Strategy<Value = Digest> {
        any::<[u8; 32]>().prop_map(Digest::from_bytes)
    }

    fn repetition() -> impl Strategy<Value = RepetitionMemory> {
        let tool = (fingerprint(), any::<u32>()).prop_map(|(tool, failures)| ToolCount { tool, failures });
        let signature = (fingerprint(), fingerprint(), any::<u32>(), option::of((fingerprint(), any::<NonZeroU32>())), any::<bool>());
        let signature = signature.prop_map(|(tool, args, failures, progress, is_stopped)| SignatureCount {
            tool,
            args,
            failures,
            progress,
            is_stopped,
        });
        (vec(tool, 0..3), vec(signature, 0..3)).prop_map(|(tools, signatures)| RepetitionMemory { tools, signatures })
    }

    fn loops() -> impl Strategy<Value = LoopMemory> {
        (any::<bool>(), repetition(), any::<u32>(), option::of(fingerprint())).prop_map(|(holds_a_stop, repetition, results, last_tool)| {
            let mut memory = LoopMemory { holds_a_stop, repetition, ..LoopMemory::BLANK };
            memory.steps = steps(results).into();
            (memory.counting.results, memory.counting.last_tool) = (results, last_tool);
            memory
        })
    }

    /// Returns a memory of steps with something of every kind, or an empty one.
    fn steps(number: u32) -> StepMemory {
        if number.is_multiple_of(3) {
            return StepMemory::default();
        }
        let (short, byte) = ((number >> 8) as u16, number as u8);
        let marks = Marks::default().with(byte, true);
        let step = Step { call: number, masked: 2, tool: short, class: short, sketch: [byte; 8], round: byte, marks };
        let open = vec![Attempt { id: number, call: 3, round: byte, marks }];
        let (refusals, tallies) = (vec![Refusal { call: 4, masked: number, count: 5 }], vec![Tally { key: number, count: 6 }]);
        StepMemory { steps: vec![step; usize::from(byte % 5)], open, refusals, tallies, denials: number, round: byte }
    }

    fn guardrail() -> impl Strategy<Value = Box<GuardrailReason>> {
        let evidence = prop_oneof![digest().prop_map(Evidence::Passport), digest().prop_map(Evidence::Answer)];
        (".{0,9}", ".{0,9}", option::of(".{0,9}"), option::of(evidence)).prop_map(|(code, message, policy_id, evidence)| {
            let policy_id = policy_id.map(Into::into);
            Box::new(GuardrailReason { policy_id, evidence, ..GuardrailReason::new(code, message) })
        })
    }

    fn reason() -> impl Strategy<Value = Reason> {
        let kind = prop::sample::select(SubjectKind::ALL.to_vec());
        let suspension = (kind, option::of(".{0,9}")).prop_map(|(kind, reason)| Suspension { kind, reason });
        prop_oneof![
            (prop::sample::select(LoopCode::all().collect::<Vec<_>>()), any::<u32>())
                .prop_map(|(code, count)| Reason::Loop { code, count }),
            guardrail().prop_map(Reason::Denied),
            guardrail().prop_map(Reason::FailedOpen),
            guardrail().prop_map(Reason::Allowed),
            suspension.prop_map(|suspension| Reason::SubjectSuspended(Box::new(suspension))),
            Just(Reason::Suppressed),
            Just(Reason::ResponseNotRead),
            Just(Reason::ThreadStoreFull),
        ]
    }

    fn answer() -> impl Strategy<Value = Answer> {
        let basis = prop_oneof![Just(Basis::NotAsked), any::<u32>().prop_map(Basis::Counted), Just(Basis::NotExecuted)];
        (fingerprint(), vec(reason(), 0..3), basis)
            .prop_map(|(event, reasons, basis)| Answer { event, ruling: Ruling { reasons: reasons.into(), basis } })
    }

    fn new_calls() -> impl Strategy<Value = NewCalls> {
        prop_oneof![Just(NewCalls::Free), Just(NewCalls::CutOffWithoutIds), Just(NewCalls::CutOff), Just(NewCalls::NotRead)]
    }

    fn memory() -> impl Strategy<Value = TurnMemory> {
        let call =
            (fingerprint(), fingerprint(), digest(), option::of(fingerprint()), option::of(answer()), option::of(answer()), any::<bool>());
        let call = call.prop_map(|(id, tool, args, spelling, call, result, is_open)| CallRecord {
            id,
            tool,
            args,
            spelling,
            call,
            result,
            is_open,
        });
        let suppression = (vec(fingerprint(), 0..3), vec(fingerprint(), 0..3), any::<bool>(), any::<bool>(), new_calls());
        let suppression = suppression.prop_map(|(ids, unnamed_tools, has_unknown, has_overflowed, new_calls)| Suppression {
            ids,
            unnamed_tools,
            has_unknown,
            has_overflowed,
            new_calls,
        });
        (loops(), vec(call, 0..3), suppression).prop_map(|(loops, calls, suppression)| TurnMemory {
            loops,
            calls: Calls::of(calls),
            suppression: suppression.into(),
        })
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_back_equal(memory in memory()) {
            prop_assert_eq!(read(VERSION.into(), &encoded(&memory)), Ok(memory));
        }

        /// A record may hold such a slot if another release has written it.
        #[test]
        fn unknown_slots_are_skipped(memory in loops(), number in 3..60_000_u64, version in 1..9_u32, bytes in vec(any::<u8>(), 0..200)) {
            let foreign = Slot { number, version, bytes };
            let ([repetition, counting], steps) = (slots(&memory), steps_slot(&memory));
            let list = [repetition.as_slice(), &steps, &foreign.encoded(), &counting].concat();
            let count = 1 + [&repetition, &steps, &counting].into_iter().filter(|slot| !slot.is_empty()).count() as u64;
            let bytes = [encoded(&memory.holds_a_stop), encoded(&count), list].concat();
            prop_assert_eq!(read(VERSION.into(), &bytes), Ok(memory));
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
        let is_counting = memory.counting != Default::default();
        let is_repetition = memory.repetition != RepetitionMemory::default();
        let repetition = Slot { number: 1, version: 1, bytes: encoded(&memory.repetition) };
        let counting = Slot { number: 60_000, version: 2, bytes: encoded(&memory.counting) };
        [(is_repetition, repetition), (is_counting, counting)].map(|(is_held, slot)| if is_held { slot.encoded() } else { Vec::new() })
    }

    fn steps_slot(memory: &LoopMemory) -> Vec<u8> {
        let slot = Slot { number: 2, version: 1, bytes: encoded(&memory.steps) };
        if *memory.steps == StepMemory::default() { Vec::new() } else { slot.encoded() }
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
