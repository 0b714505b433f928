//! Detections: which signals a rule counts.

use tollgate_core::codes::codes;
use tollgate_core::decide::signal::{Dimension, Point, SignalKind};

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
