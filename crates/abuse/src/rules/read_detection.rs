//! Reading `detection`: the signal, and the fields that it has to have.

use serde_json::Value;

use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::decide::signal::{Dimension, PointKind, SignalKind};
use tollgate_core::settings::{Entry, Section, Spelling, shape};

use super::fields::{fields_of, instead, listed};
use super::read_values::{Tenants, is_without_tenant, read_values, strings_of};
use super::{Detection, FieldTest, Operator, refused};

const KEY: &str = "detection";
const SIGNAL: &str = "signal";

/// The most fields of a detection.
pub(super) const FIELDS_MAX: usize = 32;

/// Reads the detection of a rule, and adds its place if it names an id without its tenant.
pub(super) fn read_detection(rule: &Section<'_>, hasher: &SubjectHasher, without_tenant: &mut Vec<String>) -> Detection {
    let entries = rule.entries(KEY, Spelling::Underscores);
    let signal = read_signal(rule, &entries);
    let value = |dimension: Dimension| entries.iter().find(|entry| entry.key == dimension.as_str()).map(|entry| entry.found.value);
    let tenants = Tenants::of(&value(Dimension::Tenant).and_then(strings_of).unwrap_or_default());
    if is_without_tenant(value) {
        without_tenant.push(KEY.to_owned());
    }
    if entries.len() > FIELDS_MAX {
        rule.fault(KEY, "too many fields", format!("write {FIELDS_MAX} at most"));
    }
    let tests = entries.iter().filter(|entry| entry.key != SIGNAL);
    let mut fields: Vec<_> = tests.filter_map(|entry| read_field(entry, signal, &tenants, hasher)).collect();
    // The order in which they are written means nothing.
    fields.sort_by_key(|field| (field.dimension as u8, field.operator as u8));
    Detection { signal: signal.unwrap_or(SignalKind::Point(PointKind::Denial)), fields }
}

fn read_signal(rule: &Section<'_>, entries: &[Entry<'_>]) -> Option<SignalKind> {
    let Some(entry) = entries.iter().find(|entry| entry.key == SIGNAL) else {
        let names: Vec<_> = SignalKind::names().collect();
        rule.fault(&format!("{KEY}.{SIGNAL}"), "nothing", format!("write what is counted: {}", listed(names)));
        return None;
    };
    let Some(name) = entry.found.as_str() else {
        entry.fault(shape(entry.found.value), "write the name of one signal");
        return None;
    };
    let signal = SignalKind::from_name(name);
    if signal.is_none() {
        entry.fault("an unknown signal", instead(name, &SignalKind::names().collect::<Vec<_>>()));
    }
    signal
}

fn read_field(entry: &Entry<'_>, signal: Option<SignalKind>, tenants: &Tenants<'_>, hasher: &SubjectHasher) -> Option<FieldTest> {
    if let Some(fix) = refused::of_detection(&entry.key) {
        entry.fault("a key that detections do not have", fix);
        return None;
    }
    let (name, modifier) = entry.key.split_once('|').map_or((entry.key.as_str(), None), |(name, modifier)| (name, Some(modifier)));
    let dimension = dimension_of(entry, name, signal)?;
    let operator = modifier.map_or(Some(Operator::Equals), |modifier| operator_of(entry, dimension, modifier))?;
    let value: &Value = entry.found.value;
    match read_values((dimension, operator), value, tenants, hasher) {
        Ok(values) => Some(FieldTest { dimension, operator, values }),
        Err((found, fix)) => {
            entry.fault(found, fix);
            None
        }
    }
}

/// Returns the field of this name, if the signal has it. With an unknown signal any known field will do.
fn dimension_of(entry: &Entry<'_>, name: &str, signal: Option<SignalKind>) -> Option<Dimension> {
    let names = |dimensions: &[Dimension]| dimensions.iter().map(|dimension| dimension.as_str()).collect::<Vec<_>>();
    let Some(dimension) = Dimension::from_name(name) else {
        entry.fault("an unknown field", instead(name, &names(&Dimension::ALL)));
        return None;
    };
    match signal {
        Some(SignalKind::Volume(_)) => {
            entry.fault("a field, and volumes have none", "remove it; `group-by` says whose amounts are summed");
            None
        }
        Some(SignalKind::Point(kind)) if !fields_of(kind).contains(&dimension) => {
            let fix = format!("remove it; `{}` has {}", kind.as_str(), listed(names(&fields_of(kind))));
            entry.fault("a field that the signal does not have", fix);
            None
        }
        _ => Some(dimension),
    }
}

fn operator_of(entry: &Entry<'_>, dimension: Dimension, modifier: &str) -> Option<Operator> {
    let names = [Operator::StartsWith, Operator::EndsWith, Operator::Contains].map(Operator::as_str);
    if let Some(name) = modifier.split('|').find(|name| refused::is_modifier(name)) {
        entry.fault(format!("the modifier `{name}`, which is not supported"), format!("write {}, or no modifier", listed(names)));
        return None;
    }
    if modifier.contains('|') {
        entry.fault("several modifiers", "write one");
        return None;
    }
    let operator = Operator::ALL.iter().copied().find(|operator| names.contains(&modifier) && operator.as_str() == modifier);
    match operator {
        None => entry.fault("an unknown modifier", instead(modifier, &names)),
        Some(_) if dimension.subject().is_some() || dimension == Dimension::ArgsHash => {
            entry.fault("a modifier on a hash, which has no parts that mean anything", "write the whole value, without a modifier");
            return None;
        }
        Some(_) => {}
    }
    operator
}
