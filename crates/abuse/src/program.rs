//! The rules in the form in which a signal finds its own: by its kind, by the kind of its subject, and by the value of one field.
//!
//! So a signal looks at the rules that may count it, and not at all there are.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use tollgate_core::decide::signal::{Dimension, KeyKind, Point, SignalKind, Volume};
use tollgate_json::ObjectWriter;

use super::rules::{AbuseRules, Correlation, Exception, FieldTest, Operator, Rule};
use super::window::{Part, Value};

/// The rules of a partition.
#[derive(Debug)]
pub(super) struct Program {
    rules: Arc<AbuseRules>,
    /// The number of each rule within the partition.
    numbers: Vec<u32>,
    /// What these counters do with each rule.
    statuses: Vec<RuleStatus>,
    /// The rules by their numbers.
    places: FxHashMap<u32, usize>,
    selections: FxHashMap<(SignalKind, KeyKind), Selection>,
    /// For each kind of subject that some rule suspends, how long a signal makes a subject active, in milliseconds.
    active_ms: FxHashMap<KeyKind, i64>,
}

/// What counters do with a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleStatus {
    /// They count nothing for the rule: the counters of a warm-up do.
    Elsewhere,
    /// They count for the rule, and nothing follows when the rule fires.
    Quiet,
    /// The rule is in force.
    InForce,
}

/// A rule that may count a signal, and as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    /// The rule, as an index.
    pub rule: usize,
    /// Which amount of a ratio the signal is.
    pub part: Part,
}

/// Rules by a value that they want.
type ByValue = FxHashMap<Box<str>, Vec<Use>>;

/// The rules that may count signals of one kind and one kind of subject.
#[derive(Debug, Default)]
struct Selection {
    /// Those that have to be asked about each signal.
    always: Vec<Use>,
    /// Those that want one of some values in a field.
    by_value: Vec<(Dimension, ByValue)>,
}

impl Program {
    /// Returns the program of the rules, with the number of each within the partition. Rules that are counted elsewhere count no signal, and
    /// do not make it matter who is active.
    pub(super) fn new(rules: Arc<AbuseRules>, numbers: Vec<u32>, statuses: Vec<RuleStatus>) -> Self {
        let places = numbers.iter().copied().zip(0..).collect();
        let (mut selections, mut active_ms) = (FxHashMap::<_, Selection>::default(), FxHashMap::<_, i64>::default());
        for (at, rule) in rules.rules.iter().enumerate() {
            let kind = rule.group_by.kind;
            if statuses.get(at) == Some(&RuleStatus::Elsewhere) {
                continue;
            }
            if rule.suspends() {
                let longest_ms = active_ms.entry(kind).or_default();
                *longest_ms = rule.timespan_ms.max(*longest_ms);
            }
            selections.entry((rule.detection.signal, kind)).or_default().add(Use { rule: at, part: Part::Part }, &rule.detection.fields);
            if let Correlation::Ratio(ratio) = &rule.correlation {
                selections.entry((ratio.over, kind)).or_default().add(Use { rule: at, part: Part::Whole }, &[]);
            }
        }
        Self { rules, numbers, statuses, places, selections, active_ms }
    }

    /// Returns the program of the same rules with other statuses.
    pub(super) fn with_statuses(&self, change: impl Fn(RuleStatus) -> RuleStatus) -> Self {
        let statuses = self.statuses.iter().map(|status| change(*status)).collect();
        Self::new(Arc::clone(&self.rules), self.numbers.clone(), statuses)
    }

    /// Puts the quiet rules in force.
    pub(super) fn enforce_quiet(&mut self) {
        self.statuses.iter_mut().filter(|status| **status == RuleStatus::Quiet).for_each(|status| *status = RuleStatus::InForce);
    }

    /// Returns the rules of some statuses.
    pub(super) fn rules_of(&self, is_of: impl Fn(RuleStatus) -> bool) -> impl Iterator<Item = &Rule> {
        self.rules.rules.iter().zip(&self.statuses).filter(move |(_, status)| is_of(**status)).map(|(rule, _)| rule)
    }

    /// Returns whether nothing follows when a rule fires.
    pub(super) fn is_quiet(&self, at: usize) -> bool {
        self.statuses.get(at) == Some(&RuleStatus::Quiet)
    }

    /// Returns all rules.
    pub(super) fn rules(&self) -> &Arc<AbuseRules> {
        &self.rules
    }

    /// Returns a rule.
    pub(super) fn rule(&self, at: usize) -> Option<&Rule> {
        self.rules.rules.get(at)
    }

    /// Returns a rule's number within the partition.
    pub(super) fn number(&self, at: usize) -> Option<u32> {
        self.numbers.get(at).copied()
    }

    /// Returns the rule with a number, as an index.
    pub(super) fn place(&self, number: u32) -> Option<usize> {
        self.places.get(&number).copied()
    }

    /// Returns the rule with a number.
    pub(super) fn numbered(&self, number: u32) -> Option<(usize, &Rule)> {
        let at = self.place(number)?;
        self.rule(at).map(|rule| (at, rule))
    }

    /// Returns for how long a signal makes a subject of a kind active, in milliseconds; `None` if that matters to no rule.
    pub(super) fn active_ms(&self, kind: KeyKind) -> Option<i64> {
        self.active_ms.get(&kind).copied()
    }

    /// Appends the rules that count a point, in order.
    pub(super) fn count_point(&self, point: &Point<'_>, uses: &mut Vec<Use>) {
        let Some(selection) = self.selections.get(&(SignalKind::Point(point.kind), point.subject.kind)) else { return };
        uses.extend_from_slice(&selection.always);
        for (dimension, by_value) in &selection.by_value {
            uses.extend(point.dimension(*dimension).and_then(|value| by_value.get(&*value)).into_iter().flatten());
        }
        let counts = |used: &Use| used.part == Part::Whole || self.rule(used.rule).is_some_and(|rule| rule.detection.matches(point));
        uses.retain(counts);
        uses.sort_unstable();
    }

    /// Appends the rules that count a volume, in order.
    pub(super) fn count_volume(&self, volume: &Volume, uses: &mut Vec<Use>) {
        if let Some(selection) = self.selections.get(&(SignalKind::Volume(volume.kind), volume.subject.kind)) {
            uses.extend_from_slice(&selection.always);
            uses.sort_unstable();
        }
    }
}

impl Selection {
    fn add(&mut self, used: Use, fields: &[FieldTest]) {
        let is_text = |dimension: Dimension| dimension.subject().is_none() && dimension != Dimension::ArgsHash;
        let Some(field) = fields.iter().find(|field| field.operator == Operator::Equals && is_text(field.dimension)) else {
            self.always.push(used);
            return;
        };
        let at = self.by_value.iter().position(|(dimension, _)| *dimension == field.dimension).unwrap_or_else(|| {
            self.by_value.push((field.dimension, FxHashMap::default()));
            self.by_value.len() - 1
        });
        let Some((_, by_value)) = self.by_value.get_mut(at) else { return };
        for value in &field.values {
            let uses = by_value.entry(value.as_str().into()).or_default();
            if !uses.contains(&used) {
                uses.push(used);
            }
        }
    }
}

impl Rule {
    /// Returns the combination of dimensions that a point counts for, as a JSON object; empty for a rule without dimensions. `None` if the
    /// point lacks one, so that the rule cannot count it.
    pub(super) fn group_of(&self, point: &Point<'_>) -> Option<String> {
        if self.group_by.dimensions.is_empty() {
            return Some(String::new());
        }
        let mut out = Vec::with_capacity(64);
        let mut object = ObjectWriter::begin(&mut out);
        for dimension in &self.group_by.dimensions {
            object.text(dimension.as_str(), &point.dimension(*dimension)?);
        }
        object.end();
        String::from_utf8(out).ok()
    }

    /// Returns the value of a point that the rule counts, if it counts distinct ones. `None` in place of it if the point has none.
    pub(super) fn value_of(&self, point: &Point<'_>) -> Option<Option<Value>> {
        let Correlation::ValueCount { field, .. } = &self.correlation else { return Some(None) };
        if let Some(digest) = point.hash(*field) {
            return Some(Some(Value::of_digest(&digest)));
        }
        point.dimension(*field).map(|text| Some(Value::of_text(&text)))
    }

    /// Returns whether an exception of the rule covers a point.
    pub(super) fn spares_point(&self, point: &Point<'_>) -> bool {
        self.exceptions.iter().any(|exception| exception.covers(point))
    }

    /// Returns whether an exception of the rule covers a volume, of which nothing but the subject is known.
    pub(super) fn spares_volume(&self, volume: &Volume, time_ms: i64) -> bool {
        let covers = |exception: &Exception| {
            let is_it = |(dimension, values): &(Dimension, Vec<String>)| {
                dimension.subject() == Some(volume.subject.kind) && values.iter().any(|value| value.as_bytes() == volume.subject.hash.hex())
            };
            exception.until_ms.is_none_or(|until_ms| time_ms < until_ms) && exception.fields.iter().all(is_it)
        };
        self.exceptions.iter().any(covers)
    }

    /// Returns after how long without a firing a subject goes a step down, in milliseconds.
    pub(super) fn decay_ms(&self) -> i64 {
        if self.ladder.decay_ms > 0 { self.ladder.decay_ms } else { self.timespan_ms.max(self.suppress_ms).max(1) }
    }
}
