//! Who goes first when memory is used up: those farthest from any threshold, and among equals those heard of longest ago.
//!
//! It would be wrong to drop whom nothing was heard of for longest, whatever is known of them: somebody who is watched could send signals
//! of made-up subjects until their own counter is dropped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::SlotKey;

/// Subjects in the order in which they go. It is made when somebody has to go for the first time, so that it takes no memory where there is
/// enough. A candidacy may be out of date: the subject has had signals since. It is brought up to date when its turn comes, so that a signal
/// costs nothing here.
#[derive(Debug, Default)]
pub(super) struct Candidates(BinaryHeap<Reverse<Candidacy>>);

/// A subject's closeness to a threshold, the number of its last signal, and its place. No two subjects have the same last signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidacy {
    /// The closeness in the highest byte, and then the number of the last signal, in two halves: so it takes 12 bytes with the place.
    rank: [u32; 2],
    at: SlotKey,
}

impl Candidacy {
    fn of(closeness: u8, touch: u64, at: SlotKey) -> Self {
        let rank = u64::from(closeness) << 56 | touch;
        Self { rank: [(rank >> 32) as u32, rank as u32], at }
    }
}

impl Candidates {
    /// Returns the order of those at some places. `now` returns the closeness and last signal of who is at a place, if that one may go.
    pub(super) fn of(places: impl Iterator<Item = SlotKey>, now: impl Fn(SlotKey) -> Option<(u8, u64)>) -> Self {
        Self(places.filter_map(|at| now(at).map(|(closeness, touch)| Reverse(Candidacy::of(closeness, touch, at)))).collect())
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.len() * size_of::<Candidacy>()
    }

    /// Adds a subject, or a subject again that has come farther from a threshold.
    pub(super) fn push(&mut self, closeness: u8, touch: u64, at: SlotKey) {
        self.0.push(Reverse(Candidacy::of(closeness, touch, at)));
    }

    /// Returns who goes first. `now` returns the closeness and last signal of who is at a place, if that one may go.
    pub(super) fn first(&mut self, now: impl Fn(SlotKey) -> Option<(u8, u64)>) -> Option<SlotKey> {
        while let Some(Reverse(first)) = self.0.pop() {
            let Some((closeness, touch)) = now(first.at) else { continue };
            let current = Candidacy::of(closeness, touch, first.at);
            self.0.push(Reverse(current));
            if current.rank <= first.rank {
                return Some(first.at);
            }
        }
        None
    }

    /// Returns whether half of all is out of date. Then it is better made anew, which is paid for by as many signals.
    pub(super) fn is_stale(&self, subjects: usize) -> bool {
        self.0.len() > 2 * subjects + 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_farthest_goes_first_and_then_who_was_heard_of_longest_ago() {
        let now = [Some((20, 9)), Some((10, 8)), Some((10, 7)), None];
        let mut candidates = Candidates::default();
        // As of their first signals, all were equally far, in another order.
        (0..4).for_each(|at| candidates.push(10, u64::from(at), SlotKey(at)));
        let mut gone = Vec::new();
        while let Some(first) = candidates.first(|at| now[at.at()].filter(|_| !gone.contains(&at))) {
            gone.push(first);
        }
        assert_eq!(gone, [SlotKey(2), SlotKey(1), SlotKey(0)]);
        assert_eq!(size_of::<Candidacy>(), 12);
    }

    #[test]
    fn an_order_that_is_made_late_is_the_same() {
        let now: Vec<_> = (0..100_u64).map(|touch| (touch % 10 != 0).then_some((touch as u8 % 7, touch))).collect();
        let current = |at: SlotKey| now[at.at()];
        let mut early = Candidates::default();
        (0..100).filter(|at| now[*at as usize].is_some()).for_each(|at| early.push(0, u64::from(at), SlotKey(at)));
        let mut late = Candidates::of((0..100).map(SlotKey), current);
        assert_eq!((early.first(current), late.first(current)), (Some(SlotKey(7)), Some(SlotKey(7))));
        assert!(!late.is_stale(100) && late.is_stale(10));
    }
}
