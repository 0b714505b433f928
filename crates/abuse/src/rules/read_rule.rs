//! Reading a rule, with its ladder and its exceptions.

use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::decide::signal::{Dimension, KeyKind, PointKind, SignalKind};
use tollgate_core::settings::{Section, duration_text, parse_duration};
use tollgate_json::digest::Digest;
use tollgate_json::time::parse_timestamp;

use super::digest::version_of;
use super::fields::{fields_of, listed};
use super::read_correlation::{TIMESPAN_MS_MAX, read_correlation};
use super::read_detection::read_detection;
use super::read_values::{Tenants, WARN, is_without_tenant, read_values, strings_of};
use super::{Correlation, Detection, Exception, GroupBy, Ladder, Level, Mode, Operator, Rule, Step, refused};

/// The longest id of a rule, in bytes.
pub const RULE_ID_BYTES_MAX: usize = 64;
/// The longest title or description, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// What reading rules depends on beside their text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    /// Hashes ids in clear.
    pub(super) hasher: &'a SubjectHasher,
    /// The time, in milliseconds since the epoch.
    pub(super) now_ms: i64,
}

/// A rule, and what it says to people.
#[derive(Debug, Clone)]
pub(super) struct ReadRule {
    pub(super) rule: Rule,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    /// The places that name an id in clear without its tenant: that of events without a `tenant_id`.
    pub(super) without_tenant: Vec<String>,
}

/// Reads a rule. What is wrong with it is noted in the section; what is returned then is of no use.
pub(super) fn read_rule(section: &Section<'_>, reading: Reading<'_>) -> ReadRule {
    refused::of_rule(section);
    let id = read_id(section);
    let [title, description] = ["title", "description"].map(|key| read_text(section, key));
    let level = section.word("level", &words(Level::ALL, Level::as_str)).unwrap_or(Level::Medium);
    let mode = section.word("mode", &words(Mode::ALL, Mode::as_str)).unwrap_or(Mode::Alert);
    let mut without_tenant = Vec::new();
    let detection = read_detection(section, reading.hasher, &mut without_tenant);
    let correlated = read_correlation(section, &detection);
    let (correlation, group_by, timespan_ms) = (correlated.correlation, correlated.group_by, correlated.timespan_ms);
    let ladder = read_ladder(section, mode, &detection, &group_by);
    let counted = Counted { detection: &detection, correlation: &correlation, group_by: &group_by };
    let exceptions = read_exceptions(section, &counted, (reading.hasher, reading.now_ms), &mut without_tenant);
    let suppress_ms = section.duration("suppress", 0, TIMESPAN_MS_MAX).unwrap_or(timespan_ms);
    let version = Digest::of(b"");
    let rule = Rule { id, version, level, mode, detection, correlation, group_by, timespan_ms, ladder, exceptions, suppress_ms };
    let rule = Rule { version: version_of(&rule), ..rule };
    ReadRule { rule, title, description, without_tenant }
}

/// Returns the words of a closed set, each with what it stands for.
fn words<T: Copy, const N: usize>(all: [T; N], name: impl Fn(T) -> &'static str) -> [(&'static str, T); N] {
    all.map(|value| (name(value), value))
}

fn read_id(section: &Section<'_>) -> String {
    let id = section.string("id");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if id.len() > RULE_ID_BYTES_MAX || !id.bytes().all(is_plain) {
        let fix = format!("write {RULE_ID_BYTES_MAX} letters, digits, dashes, dots or underscores at most");
        section.fault("id", "a string that no rule can be named", fix);
    }
    id
}

fn read_text(section: &Section<'_>, key: &'static str) -> Option<String> {
    let text = section.optional_string(key)?;
    if text.len() > TEXT_BYTES_MAX {
        section.fault(key, "a longer string", format!("write {TEXT_BYTES_MAX} bytes at most"));
    }
    Some(text)
}

/// The most steps.
pub(super) const STEPS_MAX: usize = 16;
/// The shortest suspension, and the shortest time without offence.
const LEAST_MS: i64 = 1_000;
/// The longest suspension, and the longest time without offence: beyond it somebody should decide.
const MOST_MS: i64 = 366 * 86_400_000;
/// How long a subject has to be without offence for each step down, where nothing is written.
const DECAY_MS: i64 = 86_400_000;

/// Reads the ladder of a rule.
pub(super) fn read_ladder(rule: &Section<'_>, mode: Mode, detection: &Detection, group_by: &GroupBy) -> Ladder {
    let section = rule.section("escalation");
    let steps = read_steps(&section);
    let decay_ms = section.duration("decay", LEAST_MS, MOST_MS).unwrap_or(DECAY_MS);
    let suspends = steps.iter().any(|step| matches!(step, Step::Suspend(_)));
    if suspends && group_by.kind == KeyKind::Call {
        section.fault(
            "steps",
            "a suspension of a `call`, which cannot be suspended",
            "write [warn], or another kind of subject in `group-by`",
        );
    }
    if suspends && detection.signal == SignalKind::Point(PointKind::SuspendedCall) {
        section.fault(
            "steps",
            "a suspension for calls that a suspension has blocked, which would prolong itself",
            "write [warn], or another `signal`",
        );
    }
    if !suspends && mode == Mode::Enforce {
        let fix = "write `escalation: {steps: [warn, 15m]}`, or `mode: alert`";
        rule.fault("mode", "`enforce` without a step that suspends", fix);
    }
    Ladder { steps, decay_ms }
}

fn read_steps(section: &Section<'_>) -> Vec<Step> {
    const KEY: &str = "steps";
    let written = section.strings(KEY).unwrap_or_default();
    if written.len() > STEPS_MAX {
        section.fault(KEY, "too many steps", format!("write {STEPS_MAX} at most"));
    }
    let mut steps = Vec::new();
    let mut last_ms = 0;
    for text in &written {
        if text == WARN {
            if last_ms > 0 {
                section.fault(KEY, "`warn` behind a suspension", "write steps that go up: [warn, 15m, 2h]");
            }
            steps.push(Step::Warn);
            continue;
        }
        let Some(suspension_ms) = parse_duration(text) else {
            section.fault(KEY, "a step that is neither `warn` nor a duration", "write steps such as [warn, 15m, 2h, 1d, 7d]");
            continue;
        };
        if !(LEAST_MS..=MOST_MS).contains(&suspension_ms) {
            let fix = format!("write durations from {} to {}", duration_text(LEAST_MS), duration_text(MOST_MS));
            section.fault(KEY, "a step that is too short or too long", fix);
        }
        if suspension_ms < last_ms {
            section.fault(KEY, "a suspension that is shorter than the one before it", "write steps that go up: [warn, 15m, 2h]");
        }
        last_ms = suspension_ms;
        steps.push(Step::Suspend(suspension_ms));
    }
    steps
}

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
