//! The evidence of a subject: the latest signals behind each of its counters, kept once however many counters they are behind.
//!
//! Some signals that a firing has used up stay too. By all of these an event that is sent again is known, which has another offset: nobody is
//! suspended for one stop that was delivered ten times.

use tollgate_core::decide::signal::PointKind;
use tollgate_core::engine::wire::{Input, Malformed, Wire};

use super::PackedId;

/// The most signals that an alert shows.
pub(crate) const EVIDENCE_MAX: usize = 5;

/// As many signals that are behind no counter any more stay.
const SPENT_MAX: usize = 5;

/// How many bits the kind of a signal takes.
const KIND_BITS: u32 = 3;
/// The counters that fit into the same byte as the kind.
const LOW: u64 = 0b1111;
/// The bit of that byte which says that there are others.
const HAS_MORE: u8 = 0x80;

const _: () = assert!(PointKind::ALL.len() <= 1 << KIND_BITS, "a kind of signal does not fit");

/// One signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Witness<'p> {
    /// The counters that it is behind, a bit for each id.
    pub counters: u64,
    /// What happened.
    pub kind: PointKind,
    /// When, in milliseconds since the epoch.
    pub time_ms: i64,
    /// The thread.
    pub thread: PackedId<'p>,
    /// The event.
    pub event: PackedId<'p>,
}

impl Witness<'_> {
    /// Returns whether both are the same thing, in the same event of the same thread.
    fn is_same(&self, other: &Witness<'_>) -> bool {
        (self.event, self.thread, self.kind) == (other.event, other.thread, other.kind)
    }
}

/// The signals behind a subject's counters, in the order in which they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Evidence<'p>(Vec<Witness<'p>>);

impl<'p> Evidence<'p> {
    /// Adds a signal. Of each counter the latest few stay.
    pub(crate) fn add(&mut self, witness: Witness<'p>) {
        self.0.push(witness);
        let mut bits = witness.counters;
        while bits != 0 {
            let bit = bits & bits.wrapping_neg();
            bits ^= bit;
            if self.0.iter().filter(|witness| witness.counters & bit != 0).count() > EVIDENCE_MAX
                && let Some(oldest) = self.0.iter_mut().find(|witness| witness.counters & bit != 0)
            {
                oldest.counters &= !bit;
            }
        }
        self.drop_spent();
    }

    /// Returns whether a signal is among these: the same thing, in the same event of the same thread.
    pub(crate) fn knows(&self, signal: &Witness<'_>) -> bool {
        self.0.iter().rev().any(|known| known.is_same(signal))
    }

    /// Merges the evidence of another fold of the same log. `counters` gives its counters the ids that they have here.
    pub(super) fn merge(&mut self, others: Self, counters: impl Fn(u64) -> u64) {
        let mut behind = 0;
        for other in others.0 {
            let witness = Witness { counters: counters(other.counters), ..other };
            match self.0.iter_mut().enumerate().find(|(_, known)| known.is_same(&witness)) {
                Some((at, known)) => {
                    known.counters |= witness.counters;
                    behind = behind.max(at + 1);
                }
                None => {
                    self.0.insert(behind.min(self.0.len()), witness);
                    behind += 1;
                }
            }
        }
        self.drop_spent();
    }

    /// Drops all but the latest of the signals that are behind no counter.
    fn drop_spent(&mut self) {
        let mut too_many = self.0.iter().filter(|witness| witness.counters == 0).count().saturating_sub(SPENT_MAX);
        self.0.retain(|witness| {
            let is_dropped = witness.counters == 0 && too_many > 0;
            too_many -= usize::from(is_dropped);
            !is_dropped
        });
    }

    /// Returns the signals behind a counter from a time on, in the order in which they came.
    pub(crate) fn of(&self, counter: u8, from_ms: i64) -> impl Iterator<Item = &Witness<'p>> {
        self.0.iter().filter(move |witness| witness.counters & bit(counter) != 0 && witness.time_ms >= from_ms)
    }

    /// Parts a counter from the signals behind it.
    pub(crate) fn release(&mut self, counter: u8) {
        self.0.iter_mut().for_each(|witness| witness.counters &= !bit(counter));
        self.drop_spent();
    }

    pub(super) fn write(&self, base_ms: i64, out: &mut Vec<u8>) {
        let (mut before, mut before_ms) = (None, base_ms);
        for witness in &self.0 {
            // The kind takes the lowest bits, so that both fit into a byte where there are few counters.
            out.push(witness.kind as u8 | ((witness.counters & LOW) << KIND_BITS) as u8 | (HAS_MORE * u8::from(witness.counters > LOW)));
            if witness.counters > LOW {
                (witness.counters >> LOW.count_ones()).write(out);
            }
            witness.time_ms.wrapping_sub(before_ms).write(out);
            PackedId::write_pair([&witness.thread, &witness.event], before.as_ref(), out);
            (before, before_ms) = (Some(witness.thread), witness.time_ms);
        }
    }

    /// Reads what is left of the input.
    pub(super) fn read(input: &mut Input<'p>, base_ms: i64) -> Result<Self, Malformed> {
        const INVALID: Malformed = Malformed::Invalid("a signal's kind");
        let (mut witnesses, mut before, mut time_ms) = (Vec::new(), None, base_ms);
        while !input.rest().is_empty() {
            let head = input.byte()?;
            let more = if head & HAS_MORE != 0 { u64::read(input)? << LOW.count_ones() } else { 0 };
            let counters = more | (u64::from(head & !HAS_MORE) >> KIND_BITS);
            let kind = PointKind::ALL.get(usize::from(head & ((1 << KIND_BITS) - 1))).copied().ok_or(INVALID)?;
            time_ms = time_ms.wrapping_add(i64::read(input)?);
            let [thread, event] = PackedId::read_pair(input, before)?;
            before = Some(thread);
            witnesses.push(Witness { counters, kind, time_ms, thread, event });
        }
        Ok(Self(witnesses))
    }
}

/// Returns the bit of a counter.
pub(crate) fn bit(counter: u8) -> u64 {
    1_u64.checked_shl(u32::from(counter)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn witness(counters: u64, time_ms: i64) -> Witness<'static> {
        Witness { counters, kind: PointKind::Denial, time_ms, thread: PackedId::of("t"), event: PackedId::of("e") }
    }

    fn times(evidence: &Evidence<'_>, counter: u8) -> Vec<i64> {
        evidence.of(counter, i64::MIN).map(|witness| witness.time_ms).collect()
    }

    #[test]
    fn the_latest_few_of_each_counter_stay() {
        let mut evidence = Evidence::default();
        (0..3).for_each(|time_ms| evidence.add(witness(0b11, time_ms)));
        (3..9).for_each(|time_ms| evidence.add(witness(0b01, time_ms)));
        assert_eq!((times(&evidence, 0), times(&evidence, 1)), (vec![4, 5, 6, 7, 8], vec![0, 1, 2]));
        evidence.release(1);
        assert_eq!((evidence.0.len(), times(&evidence, 0).len(), times(&evidence, 1).len()), (9, 5, 0));
        evidence.release(0);
        assert_eq!(evidence.0.iter().map(|witness| witness.time_ms).collect::<Vec<_>>(), [4, 5, 6, 7, 8], "the latest that are used up");
    }

    #[test]
    fn a_signal_that_was_used_up_is_still_known() {
        let mut evidence = Evidence::default();
        let of = |event| Witness { event: PackedId::of(event), ..witness(1, 0) };
        evidence.add(of("a"));
        evidence.release(0);
        let knows = |witness| evidence.knows(&witness);
        assert!(knows(of("a")) && !knows(of("b")));
        assert!(!knows(Witness { kind: PointKind::LoopStop, ..of("a") }), "another thing in the same event");
        assert!(!knows(Witness { thread: PackedId::of("u"), ..of("a") }), "another thread's event of that name");
        let mut out = Vec::new();
        evidence.write(0, &mut out);
        assert_eq!(Evidence::read(&mut Input::new(1, &out), 0), Ok(evidence));
    }

    #[test]
    fn evidence_of_two_folds_of_one_log_is_one_in_the_order_of_the_log() {
        let of = |event, counters, time_ms| Witness { event: PackedId::of(event), ..witness(counters, time_ms) };
        let (mut one, mut other) = (Evidence::default(), Evidence::default());
        [("b", 2), ("d", 4)].into_iter().for_each(|(event, time_ms)| one.add(of(event, 0b1, time_ms)));
        [("a", 1), ("b", 2), ("c", 3), ("e", 5)].into_iter().for_each(|(event, time_ms)| other.add(of(event, 0b1, time_ms)));
        one.merge(other, |counters| counters << 3);
        let found: Vec<_> = one.0.iter().map(|witness| (witness.time_ms, witness.counters)).collect();
        assert_eq!(found, [(1, 0b1000), (2, 0b1001), (3, 0b1000), (5, 0b1000), (4, 0b1)], "of two that only one has seen, either is first");
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let mut evidence = Evidence::default();
        evidence.add(witness(0b11, 100));
        evidence.add(Witness { thread: PackedId::of("u"), kind: PointKind::SafetyStop, ..witness(0b100, -5) });
        evidence.add(witness(1 << 63 | 1, 7));
        let mut out = Vec::new();
        evidence.write(90, &mut out);
        assert_eq!(Evidence::read(&mut Input::new(1, &out), 90), Ok(evidence));
        assert_eq!(Evidence::read(&mut Input::new(1, &[0xf]), 0), Err(Malformed::Invalid("a signal's kind")));
    }
}
