//! The warm-up of rules that are new to a state: they need what the log still holds from before.
//!
//! A fold of its own counts for them, from as far back as they need up to where the partition is. The partition's fold goes on meanwhile,
//! and takes the other one in before a record that is the next one for both. So a rule knows what it would know if it had been there, and
//! nobody waits for it.
//!
//! ```text
//! partition   ── record ── record ── record ──┬── record ── record ── checkpoint ── record
//! warm-up        ╰─ reads the log ─ offered ──╯  merged (quiet)         ╰─ in force
//! ```
//!
//! Both read the same log, and the partition may always be a little ahead. A warm-up that comes too late is given back to read on. From then
//! on the partition keeps its records, so that the next time it can show what is missing.
//!
//! The new rules stay quiet until all of it is merged and a checkpoint has it. Whoever takes the partition over before begins the warm-up
//! anew, and must not find that a rule has suspended somebody of whom the state knows nothing.

use std::num::NonZeroUsize;

use tollgate_core::decide::signal;
use tollgate_core::event::record::{Offset, OwnedRecord, Record};

use super::counters::Counters;
use super::program::RuleStatus;
use super::rules::{Correlation, Rule};
use super::state::AbuseState;
use super::state::sources::SILENCE_MS;

/// How many bytes of records are kept at most for a warm-up that is behind. Where that is not enough, it has to be quicker the next time.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// A fold of the log for rules that are new to a partition's state.
#[derive(Debug)]
pub struct WarmUp {
    counters: Counters,
    /// The time from which on the rules need the log, in milliseconds since the epoch.
    from_ms: Option<i64>,
    /// The offset of the first record that it has not seen.
    next: Offset,
    dropped: Dropped,
}

/// What a warm-up dropped for want of room.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Dropped {
    pub subjects: u64,
    pub counters: u64,
}

impl WarmUp {
    /// Returns the fold that the new rules of these counters need, at its beginning; `None` if no rule is new.
    pub(super) fn of(counters: &Counters) -> Option<Self> {
        let (program, sources) = (&counters.program, &counters.state.sources);
        let back_ms =
            program.rules_of(|status| status == RuleStatus::Elsewhere).map(|rule| back_ms(rule, program.rules().lateness_ms)).max()?;
        let program = program.with_statuses(|status| match status {
            RuleStatus::Elsewhere => RuleStatus::Quiet,
            _ => RuleStatus::Elsewhere,
        });
        let from_ms = sources.reached_ms().map(|reached_ms| reached_ms.saturating_sub(back_ms));
        let counters = Counters::empty(program, AbuseState::default());
        Some(Self { counters, from_ms, next: Offset(0), dropped: Dropped::default() })
    }

    /// Returns the time from which on the rules need the log, in milliseconds since the epoch, as of the records' own timestamps; `None` if they
    /// need all of it.
    #[must_use]
    pub fn from_ms(&self) -> Option<i64> {
        self.from_ms
    }

    /// Returns the offset of the first record that it has not seen.
    #[must_use]
    pub fn next(&self) -> Offset {
        self.next
    }

    /// Notes that the records before an offset are not needed, or are not there.
    pub fn begin_at(&mut self, offset: Offset) {
        self.next = self.next.max(offset);
    }

    /// Folds a record of the log. Records are given in order.
    pub fn fold(&mut self, record: &Record<'_>) {
        self.next = Offset(record.offset.0.saturating_add(1));
        let Ok(signals) = signal::read(record.value) else { return };
        let counts = self.counters.fold(record, &signals).counts;
        self.dropped.subjects += counts.subjects_dropped;
        self.dropped.counters += counts.counters_dropped;
    }
}

/// A warm-up on its way from the offer to the checkpoint that holds it.
#[derive(Debug, Default)]
pub(super) struct OfferedWarmUp {
    arriving: Option<Arriving>,
    /// The latest records, for a warm-up that is behind.
    recent: Option<RecentRecords>,
    /// The record before which the last of a warm-up was merged, whose rules are not in force yet.
    merged_before: Option<Offset>,
}

/// A warm-up that was offered.
#[derive(Debug)]
struct Arriving {
    warm_up: Box<WarmUp>,
    subjects_per_record: NonZeroUsize,
}

/// The latest records of a partition, kept for a warm-up that is behind.
#[derive(Debug)]
struct RecentRecords {
    /// The offset behind which all records are kept.
    behind: Offset,
    records: Vec<OwnedRecord>,
    bytes: usize,
}

impl OfferedWarmUp {
    /// Offers a warm-up, and shows it what it has not seen of the latest records.
    pub(super) fn offer(&mut self, mut warm_up: Box<WarmUp>, subjects_per_record: NonZeroUsize) {
        if let Some(recent) = self.recent.take_if(|recent| recent.behind < warm_up.next) {
            let missing = recent.records.partition_point(|record| record.offset() < warm_up.next);
            let missing = recent.records.get(missing..).unwrap_or_default();
            missing.iter().for_each(|record| record.with_borrowed(|record| warm_up.fold(record)));
        }
        self.arriving = Some(Arriving { warm_up, subjects_per_record });
    }

    /// Returns a warm-up that is behind the last record that was applied. From now on the latest records are kept for it.
    pub(super) fn take_back(&mut self, applied: Offset) -> Option<Box<WarmUp>> {
        let Arriving { warm_up, .. } = self.arriving.take_if(|arriving| arriving.warm_up.next <= applied)?;
        self.recent = Some(RecentRecords { behind: applied, records: Vec::new(), bytes: 0 });
        Some(warm_up)
    }

    /// Keeps a record, if a warm-up may want it.
    pub(super) fn keep(&mut self, record: &Record<'_>) {
        let Some(recent) = &mut self.recent else { return };
        let record = OwnedRecord::of(record);
        recent.bytes += record.bytes();
        recent.records.push(record);
        self.recent.take_if(|recent| recent.bytes > KEPT_BYTES_MAX);
    }

    /// Begins to merge a warm-up for which the record at an offset is the next one too. Returns what the warm-up dropped.
    pub(super) fn begin_merge(&mut self, counters: &mut Counters, offset: Offset) -> Dropped {
        // Records may be missing between two offsets, so that what both have seen may end at different ones.
        let applied = counters.state.applied;
        let is_next = |arriving: &mut Arriving| applied < arriving.warm_up.next && arriving.warm_up.next <= offset;
        let Some(Arriving { warm_up, subjects_per_record }) = self.arriving.take_if(is_next) else { return Dropped::default() };
        self.recent = None;
        counters.begin_merge(warm_up.counters, subjects_per_record);
        warm_up.dropped
    }

    /// Notes that the last of a warm-up was merged before the record at an offset.
    pub(super) fn merged(&mut self, offset: Offset) {
        self.merged_before = Some(offset);
    }

    /// Returns whether a checkpoint that holds everything before `next` is the first that holds a merged warm-up.
    pub(super) fn is_written(&mut self, next: Offset) -> bool {
        self.merged_before.take_if(|offset| *offset < next).is_some()
    }
}

/// Returns how far back a rule needs the log, in milliseconds. A source that nothing is heard of is waited for at the beginning, which takes its
/// time of the log too.
fn back_ms(rule: &Rule, lateness_ms: i64) -> i64 {
    let kept_ms = match &rule.correlation {
        Correlation::Baseline(baseline) => baseline.history_ms.max(baseline.warmup_ms).max(rule.timespan_ms),
        _ => rule.timespan_ms,
    };
    kept_ms.saturating_add(lateness_ms).saturating_add(SILENCE_MS)
}
