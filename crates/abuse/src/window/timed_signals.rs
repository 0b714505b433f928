//! The signals of a counter that counts each of them, distinct values, or amounts: those that a window can still need, in order of time.
//!
//! A firing uses up its signals and those before it. Sources are read in any order, so a signal may come that is earlier than a firing, and
//! then the rule would have fired at another one. So what is used up stays as long as such a signal may come:
//!
//! ```text
//!     certain                          now
//! ──────┼──── a b c F d e F f g ────────┼──▶ time
//!             ╰─ used up ─╯ ╰ counting
//! ```

use tollgate_core::engine::wire::{Input, Malformed, Wire};

use super::buckets::width_ms;
use super::{BUCKETS, Finding, TIMES_MAX, read_times, write_times};
use crate::rules::{Correlation, Rule};

/// As many signals that are used up stay, or as many as one firing takes if that is more. Of a flood the earliest firings become certain.
pub(crate) const USED_MAX: usize = 32;

/// What is kept of a signal beside its time, and how a window counts it.
pub(crate) trait Kind: Copy + Ord {
    /// What a window has counted.
    type Tally: Default;

    /// Whether all signals of one time are kept as one.
    const ADDS_UP: bool = false;

    /// Adds one to a window.
    fn enter(self, tally: &mut Self::Tally);

    /// Takes one out of a window.
    fn leave(self, tally: &mut Self::Tally);

    /// Returns how much there is in a window.
    fn count(tally: &Self::Tally) -> u64;

    /// Adds another signal of the same time, if such signals are kept as one.
    fn add_up(&mut self, _: Self) {}

    /// Appends it.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads it.
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed>;
}

/// Every signal counts.
impl Kind for () {
    type Tally = u64;

    fn enter(self, tally: &mut u64) {
        *tally += 1;
    }

    fn leave(self, tally: &mut u64) {
        *tally = tally.saturating_sub(1);
    }

    fn count(tally: &u64) -> u64 {
        *tally
    }

    fn write(&self, _: &mut Vec<u8>) {}

    fn read(_: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(())
    }
}

/// Signals with times in milliseconds since the epoch, in order of time and then of what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimedSignals<K> {
    signals: Vec<(i64, K)>,
    /// How many of the first are used up, by firings that are not certain yet.
    used: usize,
}

/// A firing: the place behind the signal that it was on, and its window.
struct Fired {
    end: usize,
    from_ms: i64,
    to_ms: i64,
    count: u64,
}

/// What follows from a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Added {
    /// What the rule has found, if it fires.
    pub finding: Option<Finding>,
    /// Whether firings before that one may have come to be at earlier signals.
    pub is_late: bool,
}

/// A rule's threshold, and the length of its windows in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Threshold {
    pub gte: u64,
    pub timespan_ms: i64,
}

impl Rule {
    /// Returns how much of a window it takes. Of amounts that wait for the clock, nobody asks for it.
    pub(super) fn threshold(&self) -> Threshold {
        let (gte, timespan_ms) = match &self.correlation {
            Correlation::EventCount { gte } | Correlation::ValueCount { gte, .. } => (u64::from(*gte), self.timespan_ms),
            // Two amounts that lie a timespan apart are in one window.
            Correlation::ValueSum { gte } => (*gte, (BUCKETS + 1).saturating_mul(width_ms(self.timespan_ms))),
            _ => (u64::MAX, self.timespan_ms),
        };
        Threshold { gte, timespan_ms }
    }
}

impl<K: Kind> Default for TimedSignals<K> {
    fn default() -> Self {
        Self { signals: Vec::new(), used: 0 }
    }
}

impl<K: Kind> TimedSignals<K> {
    /// Returns the signals that count for the next firing.
    pub(super) fn counting(&self) -> &[(i64, K)] {
        self.signals.get(self.used..).unwrap_or_default()
    }

    /// Returns all signals, those that are used up first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(i64, K)> {
        self.signals.iter()
    }

    /// Returns how many signals are used up by firings that are not certain.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Keeps some of the signals.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&(i64, K)) -> bool) {
        let (mut at, mut used) = (0, self.used);
        self.signals.retain(|signal| {
            let is_kept = is_kept(signal);
            used -= usize::from(at < self.used && !is_kept);
            at += 1;
            is_kept
        });
        self.used = used;
    }

    /// Returns when nothing in it can matter any more, in milliseconds since the epoch, if no signal comes late; `None` if there is nothing in it.
    pub(super) fn over_ms(&self, timespan_ms: i64) -> Option<i64> {
        // What is used up matters until a signal of the same time would be late.
        let kept_ms = if self.counting().is_empty() { 1 } else { timespan_ms };
        self.signals.last().map(|(time_ms, _)| time_ms.saturating_add(kept_ms))
    }

    /// Returns whether there are firings that are not certain.
    pub(super) fn has_used(&self) -> bool {
        self.used > 0
    }

    /// Makes all firings certain.
    pub(super) fn forget_used(&mut self) {
        self.drop_first(self.used);
    }

    /// Returns the times of the firings that are not certain, in order.
    pub(super) fn used_ms(&self, threshold: Threshold) -> Vec<i64> {
        self.firings(0, self.used, threshold).iter().map(|fired| fired.to_ms).collect()
    }

    /// Takes out the firings before `certain_ms`, before which no signal can come any more, and returns their times. Firings of a flood are
    /// taken out earlier.
    pub(super) fn take_certain(&mut self, certain_ms: i64, threshold: Threshold) -> Vec<i64> {
        if self.used == 0 {
            return Vec::new();
        }
        let is_full = self.signals.len() >= TIMES_MAX;
        let used_max = if is_full { 0 } else { USED_MAX.max(usize::try_from(threshold.gte).unwrap_or(TIMES_MAX)) };
        let (mut times, mut end) = (Vec::new(), 0);
        for fired in self.firings(0, self.used, threshold) {
            if fired.to_ms >= certain_ms && self.used - end <= used_max {
                break;
            }
            times.push(fired.to_ms);
            end = fired.end;
        }
        self.drop_first(end);
        times
    }

    /// Drops the signals that no window needs which ends at `certain_ms` or later.
    pub(super) fn prune(&mut self, certain_ms: i64, threshold: Threshold) {
        let horizon_ms = certain_ms.saturating_sub(threshold.timespan_ms);
        self.drop_first(self.signals.partition_point(|(time_ms, _)| *time_ms <= horizon_ms));
    }

    /// Adds a signal, and returns what follows: a finding if a window with it reaches the threshold. That uses up the signals.
    ///
    /// It looks on both sides of the new time, so that it does not matter in which order signals come.
    pub(super) fn add(&mut self, time_ms: i64, kind: K, threshold: Threshold) -> Added {
        if self.signals.len() >= TIMES_MAX {
            self.drop_first(1);
        }
        let first = self.signals.partition_point(|(other_ms, _)| *other_ms < time_ms);
        let is_there = K::ADDS_UP && self.signals.get(first).is_some_and(|(other_ms, _)| *other_ms == time_ms);
        let at = if is_there { first } else { self.signals.partition_point(|other| *other <= (time_ms, kind)) };
        let is_late = at < self.used;
        let known = if is_late { self.firings(0, self.used, threshold).len() } else { 0 };
        match self.signals.get_mut(at).filter(|_| is_there) {
            Some((_, there)) => there.add_up(kind),
            None => self.signals.insert(at, (time_ms, kind)),
        }
        if is_late {
            return self.fire_again(known, threshold);
        }
        let is_before = |other_ms: i64| other_ms <= time_ms.saturating_sub(threshold.timespan_ms);
        let start = self.signals.partition_point(|(other_ms, _)| is_before(*other_ms)).max(self.used);
        let end = self.signals.partition_point(|(other_ms, _)| *other_ms < time_ms.saturating_add(threshold.timespan_ms));
        // Most often there are not enough.
        if !K::ADDS_UP && (end.saturating_sub(start) as u64) < threshold.gte {
            return Added::default();
        }
        let finding = self.firings(start, end, threshold).into_iter().next().map(|fired| self.use_up(&fired, threshold));
        Added { finding, is_late: false }
    }

    /// Finds the firings again, behind a signal that is earlier than one of those that are `known`. Each of these comes to be at the same signal
    /// or at an earlier one, and there may be one more.
    fn fire_again(&mut self, known: usize, threshold: Threshold) -> Added {
        let firings = self.firings(0, self.signals.len(), threshold);
        self.used = known.checked_sub(1).and_then(|last| firings.get(last)).map_or(0, |fired| fired.end);
        let finding = firings.get(known).map(|fired| self.use_up(fired, threshold));
        Added { finding, is_late: true }
    }

    fn use_up(&mut self, fired: &Fired, threshold: Threshold) -> Finding {
        self.used = fired.end;
        Finding::counted(fired.from_ms, fired.to_ms, fired.count, threshold.gte)
    }

    /// Returns the firings among some of the signals, in order: each is at the first signal that completes a window behind the one before.
    fn firings(&self, start: usize, end: usize, Threshold { gte, timespan_ms }: Threshold) -> Vec<Fired> {
        let (mut firings, mut tally, mut first) = (Vec::new(), K::Tally::default(), start);
        for (at, (to_ms, kind)) in self.signals.iter().enumerate().take(end).skip(start) {
            kind.enter(&mut tally);
            while let Some((_, kind)) = self.signals.get(first).filter(|(from_ms, _)| to_ms.saturating_sub(*from_ms) >= timespan_ms) {
                kind.leave(&mut tally);
                first += 1;
            }
            let count = K::count(&tally);
            if count >= gte {
                let from_ms = self.signals.get(first).map_or(*to_ms, |(from_ms, _)| *from_ms);
                firings.push(Fired { end: at + 1, from_ms, to_ms: *to_ms, count });
                (tally, first) = (K::Tally::default(), at + 1);
            }
        }
        firings
    }

    fn drop_first(&mut self, count: usize) {
        self.signals.drain(..count.min(self.signals.len()));
        self.used = self.used.saturating_sub(count);
    }

    /// Appends the signals, with times as of `base_ms`.
    pub(super) fn write(&self, base_ms: i64, out: &mut Vec<u8>) {
        ((self.signals.len() as u64) << 1 | u64::from(self.has_used())).write(out);
        if self.has_used() {
            (self.used as u64).write(out);
        }
        write_times(self.signals.iter().map(|(time_ms, _)| *time_ms), base_ms, out);
        self.signals.iter().for_each(|(_, kind)| kind.write(out));
    }

    /// Reads the signals.
    pub(super) fn read(input: &mut Input<'_>, base_ms: i64) -> Result<Self, Malformed> {
        let head = u64::read(input)?;
        let count = usize::try_from(head >> 1).map_err(|_| Malformed::Truncated)?;
        let used = if head & 1 == 0 { 0 } else { u64::read(input)? };
        let used = usize::try_from(used).ok().filter(|used| *used <= count && (*used > 0) == (head & 1 > 0));
        let used = used.ok_or(Malformed::Invalid("how many signals are used up"))?;
        let times = read_times(input, base_ms, count)?;
        let signals = times.into_iter().map(|time_ms| K::read(input).map(|kind| (time_ms, kind)));
        Ok(Self { signals: signals.collect::<Result<_, _>>()?, used })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: Threshold = Threshold { gte: 3, timespan_ms: 100 };

    fn times(kept: &TimedSignals<()>) -> Vec<i64> {
        kept.counting().iter().map(|(time_ms, ())| *time_ms).collect()
    }

    #[test]
    fn what_no_window_can_need_is_dropped() {
        let mut kept = TimedSignals { signals: vec![(1, ()), (2, ()), (3, ())], used: 0 };
        kept.prune(102, THREE);
        assert_eq!(times(&kept), [3]);
    }

    #[test]
    fn a_signal_before_a_firing_moves_it_and_may_bring_another() {
        let mut kept = TimedSignals::default();
        for time_ms in [0, 50, 90, 95, 130] {
            kept.add(time_ms, (), THREE);
        }
        assert_eq!((kept.used_ms(THREE), times(&kept)), (vec![90], vec![95, 130]));
        let added = kept.add(10, (), THREE);
        assert_eq!((added.finding.map(|found| (found.from_ms, found.to_ms)), added.is_late), (Some((90, 130)), true));
        assert_eq!((kept.used_ms(THREE), times(&kept)), (vec![50, 130], vec![]));
        let mut out = Vec::new();
        kept.write(7, &mut out);
        assert_eq!(TimedSignals::read(&mut Input::new(1, &out), 7), Ok(kept.clone()));
        assert_eq!((kept.take_certain(50, THREE), kept.take_certain(51, THREE)), (vec![], vec![50]));
        assert_eq!((kept.used_ms(THREE), kept.over_ms(100)), (vec![130], Some(131)));
        assert_eq!((kept.take_certain(i64::MAX, THREE), kept.has_used(), kept.over_ms(100)), (vec![130], false, None));
    }

    /// Or else every signal of a flood would take longer than the one before.
    #[test]
    fn a_flood_makes_its_earliest_firings_certain() {
        let mut kept = TimedSignals::default();
        for time_ms in 0..1_000 {
            kept.take_certain(i64::MIN, THREE);
            kept.add(time_ms, (), THREE);
            assert!(kept.signals.len() <= USED_MAX + 6, "{}", kept.signals.len());
        }
        let large = Threshold { gte: 100, timespan_ms: 10_000 };
        let mut kept = TimedSignals::default();
        for time_ms in 0..199 {
            kept.take_certain(i64::MIN, large);
            kept.add(time_ms, (), large);
        }
        assert_eq!(kept.used_ms(large), [99], "of a large threshold the latest firing stays");
    }
}
