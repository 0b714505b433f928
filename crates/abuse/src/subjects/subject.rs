//! A subject, and the bytes that it is kept as.
//!
//! There may be millions of subjects, and a signal concerns one of them. So a subject is kept as bytes, the same that its state record holds.
//! A signal opens the counters that it concerns; the others are passed through as they are.

use std::cmp::Reverse;

use tollgate_core::engine::wire::{Input, Malformed, Wire};
use tollgate_core::event::record::Offset;

use super::super::rules::Rule;
use super::super::window::Window;
use super::counter::{COUNTERS_MAX, Content, Counter, Opened};
use super::evidence::{Evidence, bit};
use super::tenant::TenantTag;

/// Times are written as of this one, so that they are short: 2026-01-01.
const EPOCH_MS: i64 = 1_767_225_600_000;

/// What there is of a subject stands in the lowest bits of the number of its counters.
const HAS_BITS: u32 = 3;
const HAS_CONTROL: u64 = 1;
const IS_ACTIVE: u64 = 2;
const HAS_TENANT: u64 = 4;

/// A subject that is being worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject<'p> {
    /// The offset of the last record with a signal of it.
    pub applied: Offset,
    /// The time that its times are written as of, in milliseconds since the epoch.
    base_ms: i64,
    /// The suspension that its control says; `None` if there is no control.
    pub control: Option<Suspension>,
    /// The time of its latest signal, where it matters how many subjects are active.
    pub active_ms: Option<i64>,
    /// Its tenant, where it matters how many subjects of it are active; `None` while no signal has named it.
    pub tenant: Option<TenantTag>,
    /// Its counters, in the order in which they were made.
    pub counters: Vec<Counter<'p>>,
    /// The latest signals behind its counters.
    pub evidence: Evidence<'p>,
    /// How many counters were dropped, or not made, for want of room since it was read.
    pub crowded: u64,
}

/// A suspension, as a control says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspension {
    /// Its end, in milliseconds since the epoch.
    pub until_ms: i64,
    /// The number of the rule within the partition.
    pub rule: u32,
    /// The step of the rule's ladder.
    pub step: u32,
}

/// What the store has to know of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Whether nothing is left to remember.
    pub is_empty: bool,
    /// How close it is to any threshold; `None` if it must not be forgotten.
    pub closeness: Option<u8>,
    /// The offset of the last record with a signal of it.
    pub applied: Offset,
}

impl<'p> Subject<'p> {
    /// Returns a subject of which nothing is known, at the time of its first signal.
    pub(crate) fn new(time_ms: i64) -> Self {
        let (counters, evidence) = (Vec::new(), Evidence::default());
        Self { applied: Offset(0), base_ms: time_ms, control: None, active_ms: None, tenant: None, counters, evidence, crowded: 0 }
    }

    /// Returns a subject of which nothing is known, whose times are written as of the same one.
    pub(crate) fn beside(&self) -> Self {
        Self::new(self.base_ms)
    }

    /// Returns whether nothing is left to remember.
    fn is_empty(&self) -> bool {
        self.counters.is_empty() && self.control.is_none() && self.active_ms.is_none()
    }

    /// Returns how close it is to any threshold; `None` if it is on a ladder or suspended, so that it must not be forgotten.
    fn closeness(&self) -> Option<u8> {
        let is_held = self.control.is_some() || self.counters.iter().any(|counter| counter.is_on_ladder);
        let closest = self.counters.iter().map(|counter| counter.closeness).max().unwrap_or_default();
        (!is_held).then_some(closest)
    }

    /// Returns the place of a counter, which is made if it is not there, without taking the room of those in `busy`, a bit for each id. `None` if
    /// there is room for none.
    pub(crate) fn counter(&mut self, rule: u32, group: &str, busy: u64, window: impl FnOnce() -> Window) -> Option<usize> {
        let found = self.counters.iter().position(|counter| counter.rule == rule && *counter.group == *group);
        if found.is_some() {
            return found;
        }
        if self.counters.len() >= COUNTERS_MAX {
            self.crowded += 1;
            self.make_room(busy)?;
        }
        let id = self.free_id()?;
        let content = Content::Opened(Opened::new(window()));
        self.counters.push(Counter { id, rule, group: group.into(), closeness: 0, is_on_ladder: false, content });
        Some(self.counters.len() - 1)
    }

    /// Removes a counter of the rule that has most: one that is not on the ladder if there is one, and among those the one that is farthest
    /// from its threshold, or that was made first. One that suspends the subject stays, and one that
    /// has counted the signal at hand: `None` if all do.
    fn make_room(&mut self, busy: u64) -> Option<()> {
        let count = |rule| self.counters.iter().filter(|counter| counter.rule == rule).count();
        let rank = |at: &usize, counter: &Counter<'_>| (Reverse(count(counter.rule)), counter.is_on_ladder, counter.closeness, *at);
        let free = self.counters.iter().enumerate().filter(|(_, counter)| busy & bit(counter.id) == 0);
        let mut ranked: Vec<_> = free.map(|(at, counter)| rank(&at, counter)).collect();
        ranked.sort_unstable();
        let suspends = |opened: &mut Opened| opened.episode.as_ref().is_some_and(|episode| episode.until_ms.is_some());
        let goes = |(_, is_on_ladder, _, at): &(_, bool, _, usize)| !is_on_ladder || !self.open(*at).is_ok_and(suspends);
        let (.., at) = ranked.into_iter().find(goes)?;
        self.remove(at);
        Some(())
    }

    /// Removes a counter with what is behind it.
    pub(crate) fn remove(&mut self, at: usize) {
        if at < self.counters.len() {
            let counter = self.counters.remove(at);
            self.evidence.release(counter.id);
        }
    }

    /// Merges what another fold of the same log has counted of the subject, for rules that this one did not count for. `rule` gives a rule
    /// by its number. Counters for which there is no room are counted as dropped.
    pub(crate) fn merge<'r>(&mut self, mut other: Self, rule: impl Fn(u32) -> Option<&'r Rule>) {
        let (mut busy, mut ids) = (0, Vec::with_capacity(other.counters.len()));
        for place in 0..other.counters.len() {
            let Some((number, group, id)) = other.counters.get(place).map(|other| (other.rule, other.group.clone(), other.id)) else {
                continue;
            };
            let (Some(rule), Ok(opened)) = (rule(number), other.open(place)) else { continue };
            let window = std::mem::replace(&mut opened.window, Window::of(rule));
            let Some(at) = self.counter(number, &group, busy, || Window::of(rule)) else { continue };
            // One that is there already is on the ladder of a rule that has changed, and has counted nothing since.
            if let Ok(opened) = self.open(at) {
                opened.renew(window);
            }
            self.settle(at, rule);
            let own = self.counters.get(at).map_or(0, |counter| bit(counter.id));
            busy |= own;
            ids.push((bit(id), own));
        }
        let own = |counters| ids.iter().filter(|(other, _)| counters & other != 0).fold(0, |all, (_, own)| all | own);
        self.evidence.merge(other.evidence, own);
        self.applied = self.applied.max(other.applied);
    }

    fn free_id(&self) -> Option<u8> {
        let taken = self.counters.iter().fold(0, |taken, counter| taken | bit(counter.id));
        u8::try_from(u64::trailing_ones(taken)).ok().filter(|id| usize::from(*id) < COUNTERS_MAX)
    }

    /// Returns the counters that were opened, each with its rule's number.
    pub(crate) fn opened(&self) -> impl Iterator<Item = (u32, &Opened)> {
        self.counters.iter().filter_map(|counter| match &counter.content {
            Content::Opened(opened) => Some((counter.rule, opened)),
            Content::Packed(..) => None,
        })
    }

    /// Returns the place of a counter by its id.
    pub(crate) fn place(&self, id: u8) -> Option<usize> {
        self.counters.iter().position(|counter| counter.id == id)
    }

    /// Writes the subject into a buffer, which is emptied before, and returns what the store has to know of it.
    pub(crate) fn stamp(&self, buffer: &mut Vec<u8>) -> Stamp {
        buffer.clear();
        self.write(buffer);
        Stamp { is_empty: self.is_empty(), closeness: self.closeness(), applied: self.applied }
    }

    /// Appends the subject.
    fn write(&self, out: &mut Vec<u8>) {
        self.applied.0.write(out);
        self.base_ms.wrapping_sub(EPOCH_MS).write(out);
        let has = [(self.active_ms.is_some(), IS_ACTIVE), (self.control.is_some(), HAS_CONTROL), (self.tenant.is_some(), HAS_TENANT)];
        let has = has.into_iter().filter(|(is_there, _)| *is_there).fold(0, |has, (_, bit)| has | bit);
        ((self.counters.len() as u64) << HAS_BITS | has).write(out);
        self.tenant.iter().for_each(|tenant| tenant.write(out));
        if let Some(Suspension { until_ms, rule, step }) = self.control {
            until_ms.wrapping_sub(self.base_ms).write(out);
            rule.write(out);
            step.write(out);
        }
        self.active_ms.iter().for_each(|time_ms| time_ms.wrapping_sub(self.base_ms).write(out));
        let mut before = None;
        for counter in &self.counters {
            before = Some((counter, counter.write(self.base_ms, before, out)));
        }
        self.evidence.write(self.base_ms, out);
    }

    /// Reads a subject, with its counters packed.
    pub(crate) fn read(bytes: &'p [u8]) -> Result<Self, Malformed> {
        let mut input = Input::new(1, bytes);
        let applied = Offset(i64::read(&mut input)?);
        let base_ms = i64::read(&mut input)?.wrapping_add(EPOCH_MS);
        let has = u64::read(&mut input)?;
        let count = usize::try_from(has >> HAS_BITS).map_err(|_| Malformed::Truncated)?;
        let tenant = (has & HAS_TENANT != 0).then(|| Wire::read(&mut input)).transpose()?;
        let time = |input: &mut Input<'p>| i64::read(input).map(|time_ms| base_ms.wrapping_add(time_ms));
        let control = |input: &mut Input<'p>| Ok(Suspension { until_ms: time(input)?, rule: Wire::read(input)?, step: Wire::read(input)? });
        let control = (has & HAS_CONTROL != 0).then(|| control(&mut input)).transpose()?;
        let active_ms = (has & IS_ACTIVE != 0).then(|| time(&mut input)).transpose()?;
        if count > COUNTERS_MAX {
            return Err(Malformed::Invalid("the number of a subject's counters"));
        }
        // One may be added.
        let mut counters = Vec::with_capacity(count + 1);
        for _ in 0..count {
            let counter = Counter::read(&mut input, counters.last())?;
            counters.push(counter);
        }
        let evidence = Evidence::read(&mut input, base_ms)?;
        Ok(Self { applied, base_ms, control, active_ms, tenant, counters, evidence, crowded: 0 })
    }

    /// Returns the offset of the last record with a signal of a subject that was written.
    pub(crate) fn applied_of(bytes: &[u8]) -> Option<Offset> {
        i64::read(&mut Input::new(1, bytes)).ok().map(Offset)
    }

    /// Opens a counter, for reading and changing it. [`Subject::settle`] has to follow.
    pub(crate) fn open(&mut self, at: usize) -> Result<&mut Opened, Malformed> {
        const MISSING: Malformed = Malformed::Invalid("the place of a counter");
        let base_ms = self.base_ms;
        let counter = self.counters.get_mut(at).ok_or(MISSING)?;
        if let Content::Packed(kind, bytes) = counter.content {
            let opened = Opened::read(kind, &mut Input::new(1, bytes), base_ms, counter.is_on_ladder)?;
            counter.content = Content::Opened(opened);
        }
        match &mut counter.content {
            Content::Opened(opened) => Ok(opened),
            Content::Packed(..) => Err(MISSING),
        }
    }

    /// Notes of a counter that was opened how close it is to its rule's threshold and whether it is on the ladder.
    pub(crate) fn settle(&mut self, at: usize, rule: &Rule) {
        let Some(counter) = self.counters.get_mut(at) else { return };
        if let Content::Opened(opened) = &counter.content {
            (counter.closeness, counter.is_on_ladder) = (opened.window.closeness(rule), opened.episode.is_some());
        }
    }

    /// Checks that every counter can be read.
    pub(crate) fn check(&mut self) -> Result<(), Malformed> {
        let ids = self.counters.iter().try_fold(0, |ids, counter| (ids & bit(counter.id) == 0).then_some(ids | bit(counter.id)));
        if ids.is_none() {
            return Err(Malformed::Invalid("a counter's id"));
        }
        (0..self.counters.len()).try_for_each(|at| self.open(at).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rules::{Correlation, Detection, GroupBy, Ladder, Level, Mode};
    use super::super::super::window::{Counted, Part, WindowKind};
    use super::*;
    use tollgate_core::decide::signal::{KeyKind, PointKind, SignalKind};
    use tollgate_json::digest::Digest;

    fn rule() -> Rule {
        Rule {
            id: "r".to_owned(),
            version: Digest::of(b"r"),
            level: Level::High,
            mode: Mode::Alert,
            detection: Detection { signal: SignalKind::Point(PointKind::Denial), fields: Vec::new() },
            correlation: Correlation::EventCount { gte: 9 },
            group_by: GroupBy { kind: KeyKind::User, dimensions: Vec::new() },
            timespan_ms: 1_000,
            ladder: Ladder { steps: Vec::new(), decay_ms: 1 },
            exceptions: Vec::new(),
            suppress_ms: 1,
        }
    }

    fn count(subject: &mut Subject<'_>, counter: u32, group: &str, times: &[i64]) {
        let rule = rule();
        for time_ms in times {
            let at = subject.counter(counter, group, 0, || Window::of(&rule)).unwrap();
            let counted = Counted { time_ms: *time_ms, amount: 1, value: None, part: Part::Part };
            assert_eq!(subject.open(at).unwrap().window.add(&rule, &counted, i64::MIN, 0).finding, None);
            subject.settle(at, &rule);
        }
    }

    fn bytes_of(subject: &Subject<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        subject.write(&mut bytes);
        bytes
    }

    #[test]
    fn counters_that_have_seen_the_same_are_written_once() {
        let (same, other) = ([EPOCH_MS, EPOCH_MS + 70_000, EPOCH_MS + 900_000], [EPOCH_MS + 5]);
        let mut subject = Subject::new(EPOCH_MS);
        let mut lengths = Vec::new();
        for (counter, group, times) in [(1, "", &same[..]), (2, "", &same), (3, "a", &same), (4, "", &other), (5, "", &same)] {
            count(&mut subject, counter, group, times);
            lengths.push(bytes_of(&subject).len());
        }
        let added: Vec<_> = lengths.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(added, [3, 5, 6, 12], "with a group's length and text, and behind another that has seen something else");
        let bytes = bytes_of(&subject);
        let mut read = Subject::read(&bytes).unwrap();
        assert_eq!(bytes_of(&read), bytes, "packed");
        read.check().unwrap();
        assert_eq!(bytes_of(&read), bytes, "opened");
        assert_eq!(read.counters.iter().map(|counter| counter.closeness).collect::<Vec<_>>(), [13, 13, 13, 4, 13]);
        // The second has come to differ from the first, and the third was like the second.
        count(&mut read, 2, "", &[EPOCH_MS + 1]);
        let bytes = bytes_of(&read);
        let mut again = Subject::read(&bytes).unwrap();
        again.check().unwrap();
        let windows = |subject: &Subject<'_>| subject.opened().map(|(_, opened)| opened.clone()).collect::<Vec<_>>();
        assert_eq!(windows(&again), windows(&read));
    }

    #[test]
    fn the_first_counter_is_like_no_other() {
        let mut subject = Subject::new(EPOCH_MS);
        count(&mut subject, 1, "", &[EPOCH_MS]);
        let mut bytes = bytes_of(&subject);
        assert_eq!(bytes[..3], [0, 0, 8], "the offset, the time, and one counter");
        bytes[5] = WindowKind::same_with_closeness(0);
        assert_eq!(Subject::read(&bytes), Err(Malformed::Invalid("a window")));
    }
}
