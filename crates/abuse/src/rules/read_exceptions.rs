//! Reading `exceptions`: whom a rule leaves alone, until when, and why.

use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::decide::signal::{Dimension, SignalKind};
use tollgate_core::settings::Section;
use tollgate_json::time::parse_timestamp;

use super::fields::{fields_of, listed};
use super::ids::{Tenants, is_without_tenant};
use super::read_values::{read_values, strings_of};
use super::{Correlation, Detection, Exception, GroupBy, Operator};

/// The most exceptions of a rule.
pub(super) const EXCEPTIONS_MAX: usize = 64;
/// The longest reason, in bytes.
pub(super) const REASON_BYTES_MAX: usize = 512;

/// What a rule counts, as far as exceptions depend on it.
pub(super) struct Counted<'r> {
    pub(super) detection: &'r Detection,
    pub(super) correlation: &'r Correlation,
    pub(super) group_by: &'r GroupBy,
}

impl Counted<'_> {
    /// Returns the fields that an exception can name. An amount has no field but its subject.
    fn fields(&self) -> Vec<Dimension> {
        let has_amounts = matches!(self.correlation, Correlation::Ratio(_) | Correlation::ValueSum { .. } | Correlation::Baseline(_));
        match self.detection.signal {
            SignalKind::Point(point) if !has_amounts => fields_of(point),
            _ => Dimension::ALL.iter().copied().filter(|dimension| dimension.subject() == Some(self.group_by.kind)).collect(),
        }
    }
}

/// Reads the exceptions of a rule, and adds the places of those that name an id without its tenant. One that is over at `now_ms`, in milliseconds
/// since the epoch, is a fault: it looks as if it held.
pub(super) fn read_exceptions(
    rule: &Section<'_>,
    counted: &Counted<'_>,
    (hasher, now_ms): (&SubjectHasher, i64),
    without_tenant: &mut Vec<String>,
) -> Vec<Exception> {
    const KEY: &str = "exceptions";
    let sections = rule.mappings(KEY).unwrap_or_default();
    if sections.len() > EXCEPTIONS_MAX {
        rule.fault(KEY, "too many exceptions", format!("write {EXCEPTIONS_MAX} at most; one may name several values"));
    }
    let allowed = counted.fields();
    let read = |(place, section): (usize, &Section<'_>)| {
        let exception = read_exception(section, &allowed, hasher, now_ms);
        if is_without_tenant(|dimension| section.value(dimension.as_str())) {
            without_tenant.push(format!("{KEY}[{place}]"));
        }
        if exception.fields.is_empty() && !allowed.iter().any(|dimension| section.is_written(dimension.as_str())) {
            let names = listed(allowed.iter().map(|dimension| dimension.as_str()));
            rule.fault(&format!("{KEY}[{place}]"), "an exception for nobody", format!("write one of {names}"));
        }
        exception
    };
    sections.iter().enumerate().map(read).collect()
}

fn read_exception(section: &Section<'_>, allowed: &[Dimension], hasher: &SubjectHasher, now_ms: i64) -> Exception {
    let tenant = section.value(Dimension::Tenant.as_str());
    let tenants = Tenants::of(&tenant.and_then(strings_of).unwrap_or_default());
    let mut fields = Vec::new();
    for dimension in Dimension::ALL.iter().copied() {
        let key = dimension.as_str();
        // An amount has no tenant, but the id of its subject is hashed within one.
        let is_beside_an_id = dimension == Dimension::Tenant && allowed.iter().any(|dimension| section.is_written(dimension.as_str()));
        let is_tested = allowed.contains(&dimension);
        if !is_tested && !is_beside_an_id {
            section.refuse(
                key,
                "a field that what is counted does not have",
                &format!("remove it; write {}", listed(allowed.iter().map(|dimension| dimension.as_str()))),
            );
            continue;
        }
        let Some(value) = section.value(key) else { continue };
        match read_values((dimension, Operator::Equals), value, &tenants, hasher) {
            Ok(values) if is_tested => fields.push((dimension, values)),
            Ok(_) => {}
            Err((found, fix)) => section.fault(key, found, fix),
        }
    }
    let reason = section.string("reason");
    if reason.len() > REASON_BYTES_MAX {
        section.fault("reason", "a longer string", format!("write {REASON_BYTES_MAX} bytes at most"));
    }
    Exception { fields, until_ms: read_until(section, now_ms), reason }
}

fn read_until(section: &Section<'_>, now_ms: i64) -> Option<i64> {
    const KEY: &str = "until";
    let written = section.optional_string(KEY)?;
    // A day alone is its beginning.
    let until_ms = parse_timestamp(&written).or_else(|| parse_timestamp(&format!("{written}T00:00:00Z")));
    match until_ms {
        None => section.fault(KEY, "a string that is no moment", "write a day such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z"),
        Some(until_ms) if until_ms <= now_ms => section.fault(KEY, "a moment that is over", "remove the exception, or write a later one"),
        Some(_) => {}
    }
    until_ms
}
