//! Which fields each signal has, which values those can have, and which rules could therefore never fire.

use tollgate_core::decide::evaluate::FAILURES;
use tollgate_core::decide::safety::Category;
use tollgate_core::decide::signal::{Dimension, KeyKind, PointKind};
use tollgate_core::settings::{Section, nearest};

use super::{Detection, GroupBy, Operator};

/// The fields that every point has, as far as its event names them.
const SUBJECTS: [Dimension; 4] = [Dimension::User, Dimension::Tenant, Dimension::Agent, Dimension::Thread];

/// What a safety stop was about. All detectors that there are look at what the model wrote.
const STAGES: [&str; 1] = ["output"];

/// Returns the fields that a kind of point has, as far as its event names them.
#[must_use]
pub fn fields_of(kind: PointKind) -> Vec<Dimension> {
    let own: &[Dimension] = match kind {
        PointKind::SafetyStop => &[Dimension::Category, Dimension::Stage, Dimension::Provider, Dimension::Detector],
        PointKind::Denial | PointKind::SuppressedCall | PointKind::SuspendedCall => {
            &[Dimension::Tool, Dimension::Code, Dimension::ArgsHash]
        }
        PointKind::LoopStop => &[Dimension::Tool, Dimension::Code],
        PointKind::ToolFailure => &[Dimension::Tool],
        PointKind::ThreadStart => &[],
    };
    SUBJECTS.iter().chain(own).copied().collect()
}

/// Returns the only values that a field can have; `None` for a field that can have others.
pub(super) fn values_of(dimension: Dimension) -> Option<Vec<&'static str>> {
    match dimension {
        Dimension::Category => Some(Category::ALL.iter().map(|category| category.as_str()).collect()),
        Dimension::Stage => Some(STAGES.to_vec()),
        _ => None,
    }
}

/// Returns names as a list for people.
pub(super) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Returns what to write in place of a name that is unknown: the nearest known one, or one of all.
pub(super) fn instead(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("write `{nearest}`"),
        None => format!("write one of {}", listed(known.iter().copied())),
    }
}

/// Adds a fault to the section `condition` of a rule that counts distinct values if it could never count so many.
pub(super) fn refuse_values(condition: &Section<'_>, (field, gte): (Dimension, u32), detection: &Detection, group_by: &GroupBy) {
    if is_grouped_by(field, group_by) {
        let fix = "count the values of another field, or group by another";
        condition.fault("field", "a field that the rule groups by, so that it has one value in each group", fix);
    } else if values_in(field, detection).is_some_and(|values| values < gte as usize) {
        condition.fault("gte", "more values than the field can have here", "write as many as `detection` lets through at most");
    }
}

/// Returns what is wrong with a value of a field, and what to write instead, if no signal ever has it.
pub(super) fn fault_of_value(dimension: Dimension, operator: Operator, text: &str) -> Option<(&'static str, String)> {
    if dimension == Dimension::Code && operator == Operator::Equals && FAILURES.contains(&text) {
        let fix = "remove it: it says that a provider failed and nothing of the call, so that it is counted for nobody";
        return Some(("a code that no signal has", fix.to_owned()));
    }
    let known = values_of(dimension)?;
    let is_possible = known.iter().any(|known| operator.accepts(known, text));
    (!is_possible).then(|| ("a value that this field never has", instead(text, &known)))
}

fn is_grouped_by(field: Dimension, group_by: &GroupBy) -> bool {
    let is_of_call = group_by.kind == KeyKind::Call && matches!(field, Dimension::Tool | Dimension::ArgsHash);
    is_of_call || field.subject() == Some(group_by.kind) || group_by.dimensions.contains(&field)
}

/// Returns how many values a field can have in the signals that a detection lets through; `None` if any number.
fn values_in(field: Dimension, detection: &Detection) -> Option<usize> {
    let listed = detection.fields.iter().filter(|test| test.dimension == field && test.operator == Operator::Equals);
    let listed = listed.map(|test| test.values.len()).min();
    listed.into_iter().chain(values_of(field).map(|values| values.len())).min()
}
