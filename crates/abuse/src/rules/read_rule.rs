//! Reading a rule.

use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::settings::Section;
use tollgate_json::digest::Digest;

use super::digest::version_of;
use super::read_correlation::{TIMESPAN_MS_MAX, read_correlation};
use super::read_detection::read_detection;
use super::read_exceptions::{Counted, read_exceptions};
use super::read_ladder::read_ladder;
use super::{Level, Mode, Rule, refused};

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
fn words<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> Vec<(&'static str, T)> {
    all.iter().map(|value| (name(*value), *value)).collect()
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
