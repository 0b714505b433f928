//! What follows from one record of the signals topic: alerts, controls and counts, as data; and what is known while the record is folded.

use tollgate_core::codes::codes;
use tollgate_core::decide::signal::{SignalRejection, SubjectKey, TIME_OFF_MS_MAX};
use tollgate_core::event::record::{Offset, Partition, Record};

codes! {
    /// Where an episode stands, as its alerts say.
    Status {
        /// The rule fires.
        Firing = "firing",
        /// The subject has gone a step up.
        Escalated = "escalated",
        /// The subject is down from the ladder.
        Ended = "ended",
        /// The alert stands for many of a minute.
        Grouped = "grouped",
    }
}

codes! {
    /// What was done, as alerts say.
    Action {
        /// Nothing but the alert.
        Warned = "warned",
        /// The subject is suspended.
        Suspended = "suspended",
        /// The subject would be suspended if the rule enforced.
        WouldSuspend = "would_suspend",
        /// The suspension would have been over by the time that the signals came.
        Lapsed = "lapsed",
        /// The subject is not suspended, because the rule was about to suspend too many.
        Paused = "paused",
        /// Nothing: the subject has been without offence for long enough.
        None = "none",
        /// An operator has pardoned the subject.
        Pardoned = "pardoned",
        /// The rule suspends nobody, or nobody of a tenant, until an operator says so.
        EnforcementPaused = "enforcement_paused",
        /// An operator has said so.
        EnforcementResumed = "enforcement_resumed",
        /// A source is left out of the partition's time.
        SourceSilent = "source_silent",
        /// A source has begun again.
        SourceReset = "source_reset",
        /// Subjects are forgotten because memory is used up.
        MemoryLimit = "memory_limit",
    }
}

/// The outcome of one record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folded {
    /// Alerts, in the order in which they came about.
    pub alerts: Vec<AlertRecord>,
    /// Controls, in the order in which they came about. No key stands twice.
    pub controls: Vec<ControlRecord>,
    /// Whom the rules fired on, in the order in which they did. Some of it is in no alert: firings of rules in shadow mode, repeats, and what
    /// a grouped alert stands for.
    pub firings: Vec<Firing>,
    /// What was counted.
    pub counts: FoldCounts,
}

/// A rule fired on a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Firing {
    /// The rule, as an index into the rules in force.
    pub rule: usize,
    /// The subject.
    pub subject: SubjectKey,
    /// What was done; `None` in shadow mode, in which nobody goes up a ladder.
    pub action: Option<Action>,
}

/// A record of the alerts topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertRecord {
    /// Its key: `<kind>/<hash>` of a subject, `rule/<id>`, `source/<partition>`, or `partition/<partition>` of the signals topic.
    pub key: String,
    /// Its value, a JSON object.
    pub value: Vec<u8>,
    /// Whether it reports a suspension that is among the controls of the same record. It is published behind the acknowledgement of those.
    pub awaits_control: bool,
}

/// A record of the controls topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlRecord {
    /// Its key: `subject/<kind>/<hash>/abuse`.
    pub key: String,
    /// Its value, a JSON object; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
}

/// What was counted in one record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldCounts {
    /// Points and volumes that were new and in time.
    pub applied: u64,
    /// Points and volumes that had been applied before.
    pub repeated: u64,
    /// Points and volumes that were too far behind the partition's time.
    pub late: u64,
    /// Why the record could not be read, if it could not.
    pub rejected: Option<SignalRejection>,
    /// Sources whose offsets began again.
    pub sources_reset: u64,
    /// Sources that were left out of the partition's time because nothing was heard of them.
    pub sources_silent: u64,
    /// Subjects that were forgotten because memory is bounded.
    pub subjects_dropped: u64,
    /// Counters that were dropped, or not made, because a subject can have only so many.
    pub counters_dropped: u64,
    /// Subjects that an operator pardoned.
    pub pardoned: u64,
    /// What each rule counted, in the order of the rules; rules that counted nothing are left out.
    pub rules: Vec<RuleCounts>,
    /// The rules that enforce nothing for now, for a tenant or for all, as indices into the rules in force.
    pub paused_rules: Vec<usize>,
    /// The record's timestamp less the partition's time, in milliseconds, or while that is waited for less what is known of it; `None` if
    /// either is not known.
    pub clock_lag_ms: Option<i64>,
}

/// What one rule counted in one record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// The rule, as an index into the rules in force.
    pub rule: usize,
    /// How often it fired, in whatever mode.
    pub firings: u64,
    /// Alerts that it raised.
    pub alerts: u64,
    /// Firings that raised no alert of their own because one had been raised a short while before.
    pub suppressed: u64,
    /// Alerts that stand for others in a grouped one.
    pub grouped: u64,
    /// Signals that an exception left out.
    pub exempt: u64,
    /// Suspensions that it began or prolonged.
    pub suspensions: u64,
    /// Suspensions that were left out because the rule enforces nothing for now.
    pub paused: u64,
}

impl FoldCounts {
    /// Counts something for a rule.
    pub(super) fn rule(&mut self, rule: usize, count: impl FnOnce(&mut RuleCounts)) {
        let at = self.rules.partition_point(|counts| counts.rule < rule);
        if self.rules.get(at).is_none_or(|counts| counts.rule != rule) {
            self.rules.insert(at, RuleCounts { rule, ..RuleCounts::default() });
        }
        if let Some(counts) = self.rules.get_mut(at) {
            count(counts);
        }
    }
}

/// The record that is being folded, and what follows from it.
#[derive(Debug)]
pub(super) struct FoldContext {
    /// The partition of the signals topic.
    pub partition: Partition,
    /// The record's offset.
    pub offset: Offset,
    /// The record's own timestamp, in milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    /// The latest timestamp of any record so far, this one included.
    pub log_ms: Option<i64>,
    /// The partition's time before the record, in milliseconds since the epoch.
    pub now_ms: Option<i64>,
    /// What follows from it.
    pub folded: Folded,
}

impl FoldContext {
    /// Returns the time at which a signal counts: its own, or that of the log if it is too far ahead of it, see [`TIME_OFF_MS_MAX`].
    pub(super) fn counted_ms(&self, time_ms: i64) -> i64 {
        self.log_ms.filter(|log_ms| time_ms > log_ms.saturating_add(TIME_OFF_MS_MAX)).unwrap_or(time_ms)
    }

    pub(super) fn new(record: &Record<'_>) -> Self {
        let Record { partition, offset, timestamp_ms, .. } = *record;
        Self { partition, offset, timestamp_ms, log_ms: timestamp_ms, now_ms: None, folded: Folded::default() }
    }
}
