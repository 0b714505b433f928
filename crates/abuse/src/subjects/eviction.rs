//! Who goes first when memory is used up: those farthest from any threshold, and among equals those heard of longest ago.
//!
//! It would be wrong to drop whom nothing was heard of for longest, whatever is known of them: somebody who is watched could send signals
//! of made-up subjects until their own counter is dropped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use tollgate_core::event::record::Offset;

use super::SlotKey;

/// Subjects in the order in which they go. It is made when somebody has to go for the first time, so that it takes no memory where there is
/// enough. A candidacy may be out of date: the subject has had signals since. It is brought up to date when its turn comes, so that a signal
/// costs nothing here.
#[derive(Debug, Default)]
pub(super) struct Candidates(BinaryHeap<Reverse<Candidacy>>);

/// What a subject goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rank {
    /// How close it is to any threshold.
    pub(super) closeness: u8,
    /// The offset of the last record with a signal of it.
    pub(super) applied: Offset,
    /// The beginning of its hash, which tells those of one record apart.
    pub(super) tie: u32,
}

/// A subject's rank, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidacy {
    /// The closeness in the highest byte, and then the offset.
    rank: u64,
    tie: u32,
    at: SlotKey,
}

/// The highest byte of an offset is zero: no partition will ever have as many records.
const OFFSET_BITS: u32 = 56;

impl Candidacy {
    fn of(rank: Rank, at: SlotKey) -> Self {
        let Rank { closeness, applied, tie } = rank;
        let rank = u64::from(closeness) << OFFSET_BITS | (applied.0.unsigned_abs() & ((1 << OFFSET_BITS) - 1));
        Self { rank, tie, at }
    }

    fn order(&self) -> (u64, u32) {
        (self.rank, self.tie)
    }
}

impl Candidates {
    /// Returns the order of those at some places. `now` returns the rank of who is at a place, if that one may go.
    pub(super) fn of(places: impl Iterator<Item = SlotKey>, now: impl Fn(SlotKey) -> Option<Rank>) -> Self {
        Self(places.filter_map(|at| now(at).map(|rank| Reverse(Candidacy::of(rank, at)))).collect())
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.len() * size_of::<Candidacy>()
    }

    /// Adds a subject, or a subject again that has come farther from a threshold.
    pub(super) fn push(&mut self, rank: Rank, at: SlotKey) {
        self.0.push(Reverse(Candidacy::of(rank, at)));
    }

    /// Returns who goes first. `now` returns the rank of who is at a place, if that one may go. Places of equals are
    /// those of this process: `order` says what they are in the order of, whoever restored them. Nobody at `spared` is returned.
    pub(super) fn first<O: Ord>(
        &mut self,
        spared: SlotKey,
        now: impl Fn(SlotKey) -> Option<Rank>,
        order: impl Fn(SlotKey) -> O,
    ) -> Option<SlotKey> {
        let (mut equals, mut aside): (Vec<Candidacy>, Vec<Candidacy>) = Default::default();
        while let Some(mut top) = self.0.peek_mut() {
            let Reverse(first) = *top;
            if equals.first().is_some_and(|equal| equal.order() < first.order()) {
                break;
            }
            match now(first.at).map(|rank| Candidacy::of(rank, first.at)) {
                // It has had signals since.
                Some(current) if current.order() > first.order() => *top = Reverse(current),
                current => {
                    PeekMut::pop(top);
                    let list = if first.at == spared { &mut aside } else { &mut equals };
                    list.extend(current);
                }
            }
        }
        let first = equals.iter().map(|equal| equal.at).min_by_key(|at| order(*at));
        equals.dedup();
        aside.dedup();
        self.0.extend(equals.into_iter().chain(aside).map(Reverse));
        first
    }

    /// Returns whether half of all is out of date. Then it is better made anew, which is paid for by as many signals.
    pub(super) fn is_stale(&self, subjects: usize) -> bool {
        self.0.len() > 2 * subjects + 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: SlotKey = SlotKey(u32::MAX);

    type Now = [Option<Rank>];

    fn rank(closeness: u8, applied: i64) -> Option<Rank> {
        Some(Rank { closeness, applied: Offset(applied), tie: 0 })
    }

    fn gone(candidates: &mut Candidates, now: &Now, order: impl Fn(SlotKey) -> u32) -> Vec<u32> {
        let mut gone = Vec::new();
        while let Some(first) = candidates.first(NOBODY, |at| now[at.at()].filter(|_| !gone.contains(&at.0)), &order) {
            gone.push(first.0);
        }
        gone
    }

    #[test]
    fn who_is_farthest_goes_first_and_then_who_was_heard_of_longest_ago() {
        let now = [rank(20, 9), rank(10, 8), rank(10, 7), None];
        let mut candidates = Candidates::default();
        // As of their first signals, all were equally far, in another order.
        (0..4).for_each(|at| candidates.push(rank(10, at).unwrap(), SlotKey(at as u32)));
        assert_eq!(gone(&mut candidates, &now, |at| at.0), [2, 1, 0]);
        assert_eq!(size_of::<Candidacy>(), 16);
    }

    #[test]
    fn among_those_of_one_record_it_does_not_matter_where_they_are() {
        let tied = |tie| Some(Rank { tie, ..rank(1, 5).unwrap() });
        let now = [tied(3), tied(1), rank(1, 4), tied(2), tied(2)];
        let mut candidates = Candidates::of((0..5).map(SlotKey), |at| now[at.at()]);
        assert_eq!(gone(&mut candidates, &now, |at| 9 - at.0), [2, 1, 4, 3, 0], "and of two whose hashes begin alike the order tells");
    }

    #[test]
    fn who_is_spared_has_its_turn_later() {
        let now = [rank(1, 5), rank(1, 4), rank(2, 6)];
        let mut candidates = Candidates::of((0..3).map(SlotKey), |at| now[at.at()]);
        let mut first = |spared| candidates.first(SlotKey(spared), |at| now[at.at()], |at| at.0);
        assert_eq!([1, 0, 9].map(&mut first), [0, 1, 1].map(|at| Some(SlotKey(at))));
    }

    #[test]
    fn an_order_that_is_made_late_is_the_same() {
        let now: Vec<_> = (0..100).map(|offset: i64| rank(offset as u8 % 7, offset).filter(|_| offset % 10 != 0)).collect();
        let mut early = Candidates::default();
        (0..100).filter(|at| now[*at as usize].is_some()).for_each(|at| early.push(rank(0, at).unwrap(), SlotKey(at as u32)));
        let mut late = Candidates::of((0..100).map(SlotKey), |at| now[at.at()]);
        assert!(!late.is_stale(100) && late.is_stale(10));
        assert_eq!(gone(&mut early, &now, |at| at.0), gone(&mut late, &now, |at| at.0));
    }
}
