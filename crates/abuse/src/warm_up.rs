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

use super::rules::{Correlation, Rule};
use super::sources::SILENCE_MS;
use super::stage::Abuse;
use super::state::AbuseState;

/// How many bytes of records are kept at most for a warm-up that is behind. Where that is not enough, it has to be quicker the next time.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// A warm-up that was offered.
#[derive(Debug)]
pub(super) struct Arriving {
    pub(super) warm_up: Box<WarmUp>,
    pub(super) subjects_per_record: NonZeroUsize,
}

/// The latest records of a partition, kept for a warm-up that is behind.
#[derive(Debug)]
pub(super) struct RecentRecords {
    /// The offset behind which all records are kept.
    behind: Offset,
    records: Vec<OwnedRecord>,
    bytes: usize,
}

/// What a fold does with a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleStatus {
    /// It counts nothing for the rule: another fold does.
    Elsewhere,
    /// It counts for the rule, and nothing follows when the rule fires.
    Quiet,
    /// The rule is in force.
    InForce,
}

/// A fold of the log for rules that are new to a partition's state.
#[derive(Debug)]
pub struct WarmUp {
    pub(super) stage: Abuse,
    /// The time from which on the rules need the log, in milliseconds since the epoch.
    from_ms: Option<i64>,
    /// The offset of the first record that it has not seen.
    pub(super) next: Offset,
    /// Subjects and counters that were dropped for want of room.
    pub(super) dropped: (u64, u64),
}

impl WarmUp {
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
        let counts = self.stage.fold(record, &signals).counts;
        let (subjects, counters) = &mut self.dropped;
        *subjects += counts.subjects_dropped;
        *counters += counts.counters_dropped;
    }
}

impl Abuse {
    /// Returns the fold that new rules need, at its beginning; `None` if there is nothing to begin.
    #[must_use]
    pub fn warm_up(&self) -> Option<Box<WarmUp>> {
        let is_new = |at: usize| self.statuses.get(at) == Some(&RuleStatus::Elsewhere);
        let rules = self.program.rules();
        let new = rules.rules.iter().enumerate().filter(|(at, _)| is_new(*at));
        let back_ms = new.map(|(_, rule)| back_ms(rule, rules.lateness_ms)).max()?;
        let other = |standing: &RuleStatus| if *standing == RuleStatus::Elsewhere { RuleStatus::Quiet } else { RuleStatus::Elsewhere };
        let program = self.program.of(is_new);
        let statuses = self.statuses.iter().map(other).collect();
        let stage = Self::of(program, AbuseState::default(), statuses);
        let from_ms = self.reached_ms().map(|reached_ms| reached_ms.saturating_sub(back_ms));
        Some(Box::new(WarmUp { stage, from_ms, next: Offset(0), dropped: (0, 0) }))
    }

    /// Offers a warm-up. It is merged from the record on that is the next one for both, so many subjects with each record.
    pub fn offer(&mut self, mut warm_up: Box<WarmUp>, subjects_per_record: NonZeroUsize) {
        if let Some(kept) = self.kept.take_if(|kept| kept.behind < warm_up.next) {
            let missing = kept.records.partition_point(|record| record.offset() < warm_up.next);
            let missing = kept.records.get(missing..).unwrap_or_default();
            missing.iter().for_each(|record| record.with_borrowed(|record| warm_up.fold(record)));
        }
        self.arriving = Some(Arriving { warm_up, subjects_per_record });
    }

    /// Returns a warm-up that was offered and is behind: it has to be shown more of the log, and then offered again.
    pub fn take_back(&mut self) -> Option<Box<WarmUp>> {
        let applied = self.state.applied;
        let Arriving { warm_up, .. } = self.arriving.take_if(|arriving| arriving.warm_up.next <= applied)?;
        self.kept = Some(RecentRecords { behind: applied, records: Vec::new(), bytes: 0 });
        Some(warm_up)
    }

    /// Keeps a record, if a warm-up may want it.
    pub(super) fn keep(&mut self, record: &Record<'_>) {
        let Some(kept) = &mut self.kept else { return };
        let record = OwnedRecord::of(record);
        kept.bytes += record.bytes();
        kept.records.push(record);
        self.kept.take_if(|kept| kept.bytes > KEPT_BYTES_MAX);
    }

    /// Returns the offset of the last record that was applied.
    #[must_use]
    pub fn applied(&self) -> Offset {
        self.state.applied
    }

    /// Returns the ids of the rules that are not in force yet. They raise no alert and suspend nobody.
    pub fn warming(&self) -> impl Iterator<Item = &str> {
        let rules = self.program.rules().rules.iter().zip(&self.statuses);
        rules.filter(|(_, standing)| **standing != RuleStatus::InForce).map(|(rule, _)| &*rule.id)
    }

    /// Returns whether nothing follows when a rule fires.
    pub(super) fn is_quiet(&self, rule: usize) -> bool {
        self.statuses.get(rule) == Some(&RuleStatus::Quiet)
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
