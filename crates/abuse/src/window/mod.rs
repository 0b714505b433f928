//! Windows: what a counter keeps of its signals so that it can say exactly when its rule fires.
//!
//! ```text
//! event_count   sorted times                          ┐ fire on the signal
//! value_count   distinct values with times            │
//! value_sum     sums of sixtieths of the timespan     ┘
//! ratio         two rows of buckets                   ┐ wait for the clock: a later signal might change them
//! baseline      buckets, and sums of closed timespans ┘
//! ```

mod baseline;
mod buckets;
mod ratio;
mod sums;
mod timed_signals;
mod timer;
mod values;

use baseline::BaselineCounts;
use buckets::Buckets;
use ratio::RatioCounts;
use sums::Amount;
pub(super) use timed_signals::Added;
use timed_signals::TimedSignals;
use timer::Timer;
pub(super) use values::Value;

use super::rules::{Correlation, Rule};
use tollgate_core::engine::wire::{Input, Malformed, Wire};

/// How many buckets a timespan has.
const BUCKETS: i64 = 60;
/// The most buckets of a counter. There are more than [`BUCKETS`] only where a source is far behind the others; then the oldest go.
const BUCKETS_MAX: usize = 4_096;
/// The most times of a counter. There are more than a threshold only where a source is far behind the others; then the oldest go.
const TIMES_MAX: usize = 4_096;
/// The most closed timespans of a baseline.
const HISTORY_MAX: usize = 1_024;
/// A subject's closeness to a threshold is counted in these parts: as many as fit into a byte together with the kind of a window.
pub(super) const CLOSENESS_MAX: u8 = 41;

/// The kind of a window, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowKind {
    Times,
    Values,
    Sums,
    Ratio,
    Baseline,
}

impl WindowKind {
    const ALL: [Self; 5] = [Self::Times, Self::Values, Self::Sums, Self::Ratio, Self::Baseline];

    /// What is written in place of a kind where the content is that of the counter before.
    const SAME: u8 = Self::ALL.len() as u8;

    /// Returns the kind and the closeness of a window in one byte.
    pub(super) fn with_closeness(self, closeness: u8) -> u8 {
        in_one_byte(self as u8, closeness)
    }

    /// Returns the byte of a window whose content is that of the counter before.
    pub(super) fn same_with_closeness(closeness: u8) -> u8 {
        in_one_byte(Self::SAME, closeness)
    }

    /// Reads the kind of a window, which is `None` for that of the counter before, and its closeness; `None` if no window is written so.
    pub(super) fn and_closeness(byte: u8) -> Option<(Option<Self>, u8)> {
        let (kind, closeness) = (byte / (CLOSENESS_MAX + 1), byte % (CLOSENESS_MAX + 1));
        let known = Self::ALL.get(usize::from(kind)).copied();
        (known.is_some() || kind == Self::SAME).then_some((known, closeness))
    }
}

fn in_one_byte(kind: u8, closeness: u8) -> u8 {
    kind * (CLOSENESS_MAX + 1) + closeness.min(CLOSENESS_MAX)
}

const _: () = assert!((WindowKind::SAME as usize + 1) * (CLOSENESS_MAX as usize + 1) <= 1 << u8::BITS, "both fit into a byte");

/// What a rule has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Finding {
    /// The beginning of the window, in milliseconds since the epoch.
    pub from_ms: i64,
    /// Its end.
    pub to_ms: i64,
    /// What there was in it.
    pub count: f64,
    /// What there had to be.
    pub threshold: f64,
}

impl Finding {
    fn counted(from_ms: i64, to_ms: i64, count: u64, threshold: u64) -> Self {
        Self { from_ms, to_ms, count: count as f64, threshold: threshold as f64 }
    }
}

/// Which of the two amounts of a ratio is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The signals of the rule.
    Part,
    /// What a ratio compares them with.
    Whole,
}

/// What a counter is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// When it happened, in milliseconds since the epoch.
    pub time_ms: i64,
    /// How much it is.
    pub amount: u64,
    /// The value that is counted, for a rule that counts distinct ones.
    pub value: Option<Value>,
    /// Which amount of a ratio it is.
    pub part: Part,
}

/// The window of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Window {
    /// Every signal counts.
    Times(TimedSignals<()>),
    /// Distinct values count.
    Values(TimedSignals<Value>),
    /// Amounts count.
    Sums(TimedSignals<Amount>),
    /// A share counts.
    Ratio(Box<RatioCounts>),
    /// A multiple of what is usual counts.
    Baseline(Box<BaselineCounts>),
}

impl Window {
    /// Returns the empty window of a rule.
    pub(super) fn of(rule: &Rule) -> Self {
        match rule.correlation {
            Correlation::EventCount { .. } => Self::Times(TimedSignals::default()),
            Correlation::ValueCount { .. } => Self::Values(TimedSignals::default()),
            Correlation::ValueSum { .. } => Self::Sums(TimedSignals::default()),
            Correlation::Ratio(_) => Self::Ratio(Box::default()),
            Correlation::Baseline(_) => Self::Baseline(Box::default()),
        }
    }

    /// Counts something, and returns what follows. No signal can come any more that is before `certain_ms`, so that no window can need what is a
    /// timespan before it. What is empty again after a finding is for the caller to say.
    pub(super) fn add(&mut self, rule: &Rule, counted: &Counted, certain_ms: i64, now_ms: i64) -> Added {
        let (timespan_ms, Counted { time_ms, amount, part, .. }) = (rule.timespan_ms, *counted);
        let horizon_ms = certain_ms.saturating_sub(timespan_ms);
        let finding = match (self, &rule.correlation) {
            (Self::Times(times), _) => {
                times.prune(certain_ms, rule.threshold());
                return times.add(time_ms, (), rule.threshold());
            }
            (Self::Values(values), _) => {
                let Some(value) = counted.value else { return Added::default() };
                values.prune(certain_ms, rule.threshold());
                let added = values.add(time_ms, value, rule.threshold());
                values.thin(&value, certain_ms, timespan_ms);
                return added;
            }
            (Self::Sums(sums), _) => {
                sums.prune(certain_ms, rule.threshold());
                return sums.add_amount(time_ms, amount, timespan_ms, rule.threshold());
            }
            (Self::Ratio(counts), Correlation::Ratio(ratio)) => {
                counts.prune(horizon_ms, timespan_ms);
                counts.add(time_ms, amount, part, timespan_ms);
                counts.timer.expect(counts.is_worth_a_look(ratio), now_ms, counts.first(), timespan_ms);
                None
            }
            (Self::Baseline(counts), Correlation::Baseline(baseline)) => {
                counts.now.prune(horizon_ms, timespan_ms);
                counts.forget(now_ms.saturating_sub(baseline.history_ms), timespan_ms);
                counts.add(time_ms, amount, timespan_ms);
                counts.timer.expect(counts.is_worth_a_look(baseline), now_ms, counts.now.first(), timespan_ms);
                None
            }
            _ => None,
        };
        Added { finding, is_late: false }
    }

    /// Looks at what waits for the clock, and returns a finding if the rule fires by `now_ms`. No signal can come any more that is before
    /// `certain_ms`.
    pub(super) fn look(&mut self, rule: &Rule, certain_ms: i64, now_ms: i64) -> Option<Finding> {
        let timespan_ms = rule.timespan_ms;
        let horizon_ms = certain_ms.saturating_sub(timespan_ms);
        let width_ms = buckets::width_ms(timespan_ms);
        let bucket = now_ms.div_euclid(width_ms);
        let end_ms = bucket.saturating_mul(width_ms);
        let (timer, found, for_ms, first, is_worth_a_look) = match (self, &rule.correlation) {
            (Self::Ratio(counts), Correlation::Ratio(ratio)) if counts.timer.is_due(now_ms, timespan_ms) => {
                counts.prune(horizon_ms, timespan_ms);
                let found = counts.find(bucket, ratio);
                let (first, is_worth_a_look) = (counts.first(), counts.is_worth_a_look(ratio));
                (&mut counts.timer, found, ratio.for_ms, first, is_worth_a_look)
            }
            (Self::Baseline(counts), Correlation::Baseline(baseline)) if counts.timer.is_due(now_ms, timespan_ms) => {
                counts.now.prune(horizon_ms, timespan_ms);
                let found = counts.find(bucket, end_ms, baseline, timespan_ms);
                let (first, is_worth_a_look) = (counts.now.first(), counts.is_worth_a_look(baseline));
                (&mut counts.timer, found, baseline.for_ms, first, is_worth_a_look)
            }
            _ => return None,
        };
        let found = found.map(|found| Finding { from_ms: end_ms.saturating_sub(timespan_ms), to_ms: end_ms, ..found });
        timer.look(found.is_some(), end_ms, bucket, first, is_worth_a_look);
        found.filter(|_| timer.has_held(end_ms, for_ms))
    }

    /// Takes out what is before the end of a finding, because the rule has fired: that uses it up. What is behind it, of a source that is
    /// ahead, counts for the next firing. A baseline remembers that the rule has fired.
    pub(super) fn use_up(&mut self, rule: &Rule, finding: &Finding) {
        let (timespan_ms, end_ms) = (rule.timespan_ms, finding.to_ms);
        let bucket = end_ms.div_euclid(buckets::width_ms(timespan_ms));
        match (self, &rule.correlation) {
            (Self::Ratio(counts), Correlation::Ratio(ratio)) => {
                counts.prune(end_ms, timespan_ms);
                let (first, is_worth_a_look) = (counts.first(), counts.is_worth_a_look(ratio));
                counts.timer.look(false, end_ms, bucket, first, is_worth_a_look);
            }
            (Self::Baseline(counts), Correlation::Baseline(baseline)) => {
                counts.fired(end_ms, timespan_ms);
                counts.now.prune(end_ms, timespan_ms);
                let (first, is_worth_a_look) = (counts.now.first(), counts.is_worth_a_look(baseline));
                counts.timer.look(false, end_ms, bucket, first, is_worth_a_look);
            }
            // What counts for the next firing was parted from it where the rule fired.
            _ => {}
        }
    }

    /// Returns whether it has used up signals for firings that are not certain: a signal may come that is before them.
    pub(super) fn has_used(&self) -> bool {
        match self {
            Self::Times(times) => times.has_used(),
            Self::Values(values) => values.has_used(),
            Self::Sums(sums) => sums.has_used(),
            _ => false,
        }
    }

    /// Makes all firings certain.
    pub(super) fn forget_used(&mut self) {
        match self {
            Self::Times(times) => times.forget_used(),
            Self::Values(values) => values.forget_used(),
            Self::Sums(sums) => sums.forget_used(),
            _ => {}
        }
    }

    /// Returns the times of the firings that are not certain, in order, in milliseconds since the epoch.
    pub(super) fn used_ms(&self, rule: &Rule) -> Vec<i64> {
        match self {
            Self::Times(times) => times.used_ms(rule.threshold()),
            Self::Values(values) => values.used_ms(rule.threshold()),
            Self::Sums(sums) => sums.used_ms(rule.threshold()),
            _ => Vec::new(),
        }
    }

    /// Takes out the firings that have become certain, since no signal can come any more that is before `certain_ms`, and returns their times.
    pub(super) fn take_certain(&mut self, rule: &Rule, certain_ms: i64) -> Vec<i64> {
        match self {
            Self::Times(times) => times.take_certain(certain_ms, rule.threshold()),
            Self::Values(values) => values.take_certain(certain_ms, rule.threshold()),
            Self::Sums(sums) => sums.take_certain(certain_ms, rule.threshold()),
            _ => Vec::new(),
        }
    }

    /// Returns when the clock has to look at it next, in milliseconds since the epoch; `None` if nothing waits.
    pub(super) fn due_ms(&self, timespan_ms: i64) -> Option<i64> {
        match self {
            Self::Ratio(counts) => counts.timer.due_ms(timespan_ms),
            Self::Baseline(counts) => counts.timer.due_ms(timespan_ms),
            _ => None,
        }
    }

    /// Returns when nothing in it can matter any more, in milliseconds since the epoch; `None` if there is nothing in it.
    pub(super) fn over_ms(&self, rule: &Rule, lateness_ms: i64) -> Option<i64> {
        let timespan_ms = rule.timespan_ms;
        let (last_ms, kept_ms) = match (self, &rule.correlation) {
            (Self::Times(times), _) => (times.over_ms(timespan_ms), 0),
            (Self::Values(values), _) => (values.over_ms(timespan_ms), 0),
            (Self::Sums(sums), _) => (sums.over_ms(rule.threshold().timespan_ms), 0),
            (Self::Ratio(counts), _) => (counts.part.end_ms(timespan_ms).max(counts.whole.end_ms(timespan_ms)), timespan_ms),
            (Self::Baseline(counts), Correlation::Baseline(baseline)) => (counts.end_ms(timespan_ms), baseline.history_ms),
            (Self::Baseline(counts), _) => (counts.end_ms(timespan_ms), timespan_ms),
        };
        last_ms.map(|last_ms| last_ms.saturating_add(kept_ms).saturating_add(lateness_ms))
    }

    /// Returns how close it is to its rule's threshold, in parts of [`CLOSENESS_MAX`]. It depends on the content alone and not on the time.
    pub(super) fn closeness(&self, rule: &Rule) -> u8 {
        let (count, threshold) = match (self, &rule.correlation) {
            (Self::Times(times), Correlation::EventCount { gte }) => (times.counting().len() as u64, u64::from(*gte)),
            (Self::Values(values), Correlation::ValueCount { gte, .. }) => (values.counting().len() as u64, u64::from(*gte)),
            (Self::Sums(sums), Correlation::ValueSum { gte }) => (sums.total(), *gte),
            (Self::Ratio(counts), Correlation::Ratio(ratio)) => (counts.whole.total(), ratio.min),
            (Self::Baseline(counts), Correlation::Baseline(baseline)) => (counts.now.total(), baseline.floor),
            _ => (0, 1),
        };
        let parts = u128::from(count) * u128::from(CLOSENESS_MAX) / u128::from(threshold.max(1));
        u8::try_from(parts).unwrap_or(CLOSENESS_MAX).min(CLOSENESS_MAX)
    }

    /// Returns what there is in the window that ends at `now_ms`, and what there has to be for the rule to fire, for people to compare. Sums
    /// may hold a little more than the window.
    pub(super) fn amount(&self, rule: &Rule, now_ms: Option<i64>) -> (f64, f64) {
        let is_in = |time_ms: i64| now_ms.is_none_or(|now_ms| time_ms > now_ms.saturating_sub(rule.timespan_ms));
        match (self, &rule.correlation) {
            (Self::Times(times), Correlation::EventCount { gte }) => {
                (times.counting().iter().filter(|(time_ms, ())| is_in(*time_ms)).count() as f64, f64::from(*gte))
            }
            (Self::Values(values), Correlation::ValueCount { gte, .. }) => {
                (values.counting().iter().filter(|(time_ms, _)| is_in(*time_ms)).count() as f64, f64::from(*gte))
            }
            (Self::Sums(sums), Correlation::ValueSum { gte }) => (sums.total() as f64, *gte as f64),
            (Self::Ratio(counts), Correlation::Ratio(ratio)) => {
                (counts.part.total() as f64 / counts.whole.total().max(1) as f64, ratio.gte)
            }
            (Self::Baseline(counts), Correlation::Baseline(baseline)) => (counts.now.total() as f64, baseline.floor as f64),
            _ => (0.0, 0.0),
        }
    }

    pub(super) fn kind(&self) -> WindowKind {
        match self {
            Self::Times(_) => WindowKind::Times,
            Self::Values(_) => WindowKind::Values,
            Self::Sums(_) => WindowKind::Sums,
            Self::Ratio(_) => WindowKind::Ratio,
            Self::Baseline(_) => WindowKind::Baseline,
        }
    }

    /// Appends what is in the window. Times are written as of `base_ms`.
    pub(super) fn write(&self, base_ms: i64, out: &mut Vec<u8>) {
        match self {
            Self::Times(times) => times.write(base_ms, out),
            Self::Values(values) => values.write(base_ms, out),
            Self::Sums(sums) => sums.write(base_ms, out),
            Self::Ratio(counts) => counts.write(out),
            Self::Baseline(counts) => counts.write(out),
        }
    }

    /// Reads a window of a kind.
    pub(super) fn read(kind: WindowKind, input: &mut Input<'_>, base_ms: i64) -> Result<Self, Malformed> {
        Ok(match kind {
            WindowKind::Times => Self::Times(TimedSignals::read(input, base_ms)?),
            WindowKind::Values => Self::Values(TimedSignals::read(input, base_ms)?),
            WindowKind::Sums => Self::Sums(TimedSignals::read(input, base_ms)?),
            WindowKind::Ratio => Self::Ratio(Wire::read(input)?),
            WindowKind::Baseline => Self::Baseline(Wire::read(input)?),
        })
    }
}

/// Appends ascending times, each as its distance from the one before.
fn write_times(times: impl Iterator<Item = i64>, base_ms: i64, out: &mut Vec<u8>) {
    let mut before_ms = base_ms;
    for time_ms in times {
        time_ms.wrapping_sub(before_ms).write(out);
        before_ms = time_ms;
    }
}

/// Reads so many ascending times.
fn read_times(input: &mut Input<'_>, base_ms: i64, count: usize) -> Result<Vec<i64>, Malformed> {
    // Every time takes at least a byte, so a wrong count reserves no more than the input has bytes.
    let mut times = Vec::with_capacity(count.min(input.rest().len()).saturating_add(1));
    let mut before_ms = base_ms;
    for _ in 0..count {
        before_ms = before_ms.wrapping_add(i64::read(input)?);
        times.push(before_ms);
    }
    if times.is_sorted() { Ok(times) } else { Err(Malformed::Invalid("a counter's time")) }
}
