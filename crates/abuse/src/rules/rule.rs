//! A rule, as the fold sees it: which signals it counts, what has to come together, and what follows.

use tollgate_core::codes::codes;
use tollgate_core::decide::signal::{Dimension, Interest, KeyKind, Point, PointKind, SignalKind};
use tollgate_json::digest::Digest;

codes! {
    /// How grave a finding is, in Sigma's words.
    Level {
        /// To know about.
        Informational = "informational",
        /// To look at some day.
        Low = "low",
        /// To look at.
        Medium = "medium",
        /// To look at soon.
        High = "high",
        /// To look at now.
        Critical = "critical",
    }
}

codes! {
    /// What a rule does with what it finds.
    Mode {
        /// It is counted in metrics, and nothing else.
        Shadow = "shadow",
        /// It raises alerts.
        Alert = "alert",
        /// It raises alerts and suspends.
        Enforce = "enforce",
    }
}

/// All rules in force, and what they have in common.
#[derive(Debug, Clone, Default)]
pub struct AbuseRules {
    /// The rules, each with an id of its own.
    pub rules: Vec<Rule>,
    /// How far behind the partition's time a signal may be, in milliseconds. One that is later is counted and dropped.
    pub lateness_ms: i64,
    /// The most subjects that a partition remembers.
    pub subjects_max: usize,
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The id, which alerts and controls name.
    pub id: String,
    /// The digest of the rule as it is in force, defaults filled in.
    pub version: Digest,
    /// How grave a finding is.
    pub level: Level,
    /// What is done with it.
    pub mode: Mode,
    /// Which signals count.
    pub detection: Detection,
    /// What has to come together.
    pub correlation: Correlation,
    /// What is counted apart.
    pub group_by: GroupBy,
    /// The length of the window, in milliseconds.
    pub timespan_ms: i64,
    /// What follows from a firing, and from the ones after it.
    pub ladder: Ladder,
    /// Whom the rule leaves alone.
    pub exceptions: Vec<Exception>,
    /// For how long, in milliseconds, a repeat at the same step raises no alert of its own.
    pub suppress_ms: i64,
}

/// What is counted apart: each subject of a kind, and within a subject each combination of dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupBy {
    /// The kind of subject.
    pub kind: KeyKind,
    /// The dimensions.
    pub dimensions: Vec<Dimension>,
}

/// What has to come together for a rule to fire.
#[derive(Debug, Clone, PartialEq)]
pub enum Correlation {
    /// This many signals within the timespan.
    EventCount {
        /// The threshold, 1 to 1,024.
        gte: u32,
    },
    /// This many distinct values of a dimension within the timespan.
    ValueCount {
        /// The dimension.
        field: Dimension,
        /// The threshold, 1 to 1,024.
        gte: u32,
    },
    /// Amounts of this sum within the timespan. The detection names a volume.
    ValueSum {
        /// The threshold.
        gte: u64,
    },
    /// A share of another signal.
    Ratio(Ratio),
    /// A multiple of what is usual for the subject.
    Baseline(Baseline),
}

/// The signals of a rule as a share of others.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// What the signals are compared with.
    pub over: SignalKind,
    /// The least share, more than 0.
    pub gte: f64,
    /// How much of `over` there has to be in the timespan before the share means anything.
    pub min: u64,
    /// How long the share has to hold, in milliseconds.
    pub for_ms: i64,
}

/// The amount within the timespan against the median of the subject's own closed timespans before.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// How many times the median it has to be.
    pub factor: f64,
    /// What it has to be at least, whatever the median.
    pub floor: u64,
    /// How far the median looks back, in milliseconds.
    pub history_ms: i64,
    /// How long a subject has to be known, in milliseconds.
    pub warmup_ms: i64,
    /// How long it has to hold, in milliseconds.
    pub for_ms: i64,
}

/// What follows from a firing: the steps that a subject goes up, and how it comes down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ladder {
    /// The steps. None at all is one warning.
    pub steps: Vec<Step>,
    /// After how long without offence a subject goes one step down, in milliseconds.
    pub decay_ms: i64,
}

/// One step of a ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An alert.
    Warn,
    /// An alert and a suspension of this many milliseconds.
    Suspend(i64),
}

/// Whom a rule leaves alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// The dimensions that all have to have one of these values. Hashes are written as hex digits.
    pub fields: Vec<(Dimension, Vec<String>)>,
    /// When the exception ends, in milliseconds since the epoch; `None` is never.
    pub until_ms: Option<i64>,
    /// Why there is one, for people.
    pub reason: String,
}

impl Exception {
    /// Returns whether the exception holds for a point.
    #[must_use]
    pub fn covers(&self, point: &Point<'_>) -> bool {
        self.until_ms.is_none_or(|until_ms| point.time_ms < until_ms)
            && self
                .fields
                .iter()
                .all(|(dimension, values)| point.dimension(*dimension).is_some_and(|found| values.iter().any(|value| *value == found)))
    }
}

impl Ladder {
    /// Returns whether a step suspends.
    pub(super) fn suspends(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Suspend(_)))
    }
}

impl Rule {
    /// Returns whether the rule suspends anybody.
    #[must_use]
    pub fn suspends(&self) -> bool {
        self.mode == Mode::Enforce && self.ladder.suspends()
    }
}

impl AbuseRules {
    /// Returns a sentence for each exception that is over at `now_ms`, in milliseconds since the epoch: it looks as if it held.
    pub fn ended_exceptions(&self, now_ms: i64) -> impl Iterator<Item = String> {
        let exceptions = self.rules.iter().flat_map(|rule| rule.exceptions.iter().zip(0_usize..).map(move |one| (rule, one)));
        exceptions.filter(move |(_, (exception, _))| exception.until_ms.is_some_and(|until_ms| until_ms <= now_ms)).map(
            |(rule, (_, at))| {
                format!("abuse rule {}: exceptions[{at}] is over and leaves nobody alone; remove it, or write a later time", rule.id)
            },
        )
    }

    /// Returns the optional signals that the rules use. A rule that suspends has to know how many subjects are active, so that it uses the
    /// beginnings of threads too.
    #[must_use]
    pub fn interest(&self) -> Interest {
        let mut interest = Interest::default();
        for rule in &self.rules {
            let kind = rule.group_by.kind;
            interest.add(rule.detection.signal, kind);
            if let Correlation::Ratio(ratio) = &rule.correlation {
                interest.add(ratio.over, kind);
            }
            if rule.suspends() {
                interest.add(SignalKind::Point(PointKind::ThreadStart), kind);
            }
        }
        interest
    }
}

codes! {
    /// How the value of a field is compared.
    Operator {
        /// It is one of the values.
        Equals = "equals",
        /// It begins with one of them.
        StartsWith = "startswith",
        /// It ends with one of them.
        EndsWith = "endswith",
        /// It has one of them in it.
        Contains = "contains",
    }
}

impl Operator {
    /// Returns whether the value of a field passes, given one of the values that it is compared with.
    pub(super) fn accepts(self, found: &str, value: &str) -> bool {
        match self {
            Self::Equals => found == value,
            Self::StartsWith => found.starts_with(value),
            Self::EndsWith => found.ends_with(value),
            Self::Contains => found.contains(value),
        }
    }
}

/// Which signals a rule counts: those of one kind whose fields all pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// The kind of signal.
    pub signal: SignalKind,
    /// What its fields have to be; none for a volume.
    pub fields: Vec<FieldTest>,
}

/// What one field has to be: any of the values will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTest {
    /// The field.
    pub dimension: Dimension,
    /// How it is compared.
    pub operator: Operator,
    /// The values. Hashes are written as hex digits.
    pub values: Vec<String>,
}

impl Detection {
    /// Returns whether a point is one of the signals.
    #[must_use]
    pub fn matches(&self, point: &Point<'_>) -> bool {
        self.signal == SignalKind::Point(point.kind) && self.fields.iter().all(|field| field.matches(point))
    }
}

impl FieldTest {
    fn matches(&self, point: &Point<'_>) -> bool {
        let Some(found) = point.dimension(self.dimension) else { return false };
        self.values.iter().any(|value| self.operator.accepts(&found, value))
    }
}
