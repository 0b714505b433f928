//! Rules that say something else than they seem to: those that could never fire, or would fire at something else.

use tollgate_core::decide::evaluate::FAILURES;
use tollgate_core::decide::signal::{Dimension, KeyKind};
use tollgate_core::settings::Section;

use super::fields::{instead, values_of};
use super::{Detection, GroupBy, Operator};

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
pub(super) fn of_value(dimension: Dimension, operator: Operator, text: &str) -> Option<(&'static str, String)> {
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
