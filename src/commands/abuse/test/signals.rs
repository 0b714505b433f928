//! The signals of a case: what happens when, and to whom.

use tollgate_abuse::fields_of;
use tollgate_core::decide::signal::{Dimension, PointKind, SignalKind};
use tollgate_core::settings::Section;

use super::names::{Ids, numbered};

/// The most signals of one entry, and the most of a case.
const REPEATS_MAX: u32 = 100_000;
/// The latest time of a signal, in milliseconds behind the beginning of its case: 31 days.
pub(super) const AT_MS_MAX: i64 = 31 * 86_400_000;
/// The thread of signals that name none.
const THREAD: &str = "thread";

/// A signal, as often as it comes.
#[derive(Debug, Clone)]
pub(super) struct Signals {
    pub(super) kind: SignalKind,
    /// When it comes first, in milliseconds behind the beginning of the case.
    pub(super) at_ms: i64,
    /// How often it comes.
    pub(super) count: u32,
    /// How much later each time is, in milliseconds.
    pub(super) every_ms: i64,
    /// How much it is, for a volume.
    pub(super) amount: u64,
    pub(super) ids: Ids,
    pub(super) code: Option<String>,
    pub(super) category: Option<String>,
    pub(super) stage: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) detector: Option<String>,
}

impl Signals {
    /// Reads an entry of `signals`.
    pub(super) fn read(section: &Section<'_>) -> Self {
        let kinds: Vec<_> = SignalKind::names().filter_map(|name| Some((name, SignalKind::from_name(name)?))).collect();
        let kind = section.word("signal", &kinds);
        if kind.is_none() && !section.is_written("signal") {
            let names: Vec<_> = kinds.iter().map(|(name, _)| *name).collect();
            section.fault("signal", "nothing", format!("write what happens: {}", names.join(", ")));
        }
        let kind = kind.unwrap_or(SignalKind::Point(PointKind::Denial));
        let (count, every_ms) = read_repeat(section);
        let amount = match kind {
            SignalKind::Volume(_) if section.is_written("amount") => section.amount("amount", 1 << 53).unwrap_or(1),
            _ => 1,
        };
        let signals = Self {
            kind,
            at_ms: read_at(section, "at").unwrap_or_default(),
            count,
            every_ms,
            amount,
            ids: Ids::read(section),
            code: section.optional_string("code"),
            category: section.optional_string("category"),
            stage: section.optional_string("stage"),
            provider: section.optional_string("provider"),
            detector: section.optional_string("detector"),
        };
        signals.check(section);
        signals
    }

    /// Adds faults for fields that the signal does not have.
    fn check(&self, section: &Section<'_>) {
        let known = match self.kind {
            SignalKind::Point(kind) => fields_of(kind),
            SignalKind::Volume(_) => Dimension::ALL.iter().copied().filter(|dimension| dimension.subject().is_some()).collect(),
        };
        for dimension in Dimension::ALL.iter().copied().filter(|dimension| !known.contains(dimension)) {
            let key = if dimension == Dimension::ArgsHash { "args" } else { dimension.as_str() };
            if section.is_written(key) {
                section.fault(key, "a field that the signal does not have", "remove it");
            }
        }
    }

    /// Returns the time, the ids and the code of the signal of a number, from 0.
    pub(super) fn at(&self, number: u32) -> (i64, Ids, Option<String>) {
        let mut ids = self.ids.numbered(number + 1);
        ids.thread.get_or_insert_with(|| THREAD.to_owned());
        (self.at_ms + i64::from(number) * self.every_ms, ids, numbered(self.code.as_deref(), number + 1))
    }
}

/// Reads a time behind the beginning of a case.
pub(super) fn read_at(section: &Section<'_>, key: &'static str) -> Option<i64> {
    section.duration(key, 0, AT_MS_MAX)
}

fn read_repeat(section: &Section<'_>) -> (u32, i64) {
    if !section.is_written("repeat") {
        // It is known all the same.
        section.pass_over("repeat");
        return (1, 0);
    }
    let repeat = section.section("repeat");
    let count = repeat.between("count", 1, REPEATS_MAX);
    let every_ms = repeat.duration("every", 0, AT_MS_MAX).unwrap_or_default();
    if i64::from(count).saturating_mul(every_ms) > AT_MS_MAX {
        repeat.fault("every", "a duration that leads too far", "write 31 days in all at most");
    }
    (count, every_ms)
}
