//! Errors with the line that they are about, as far as no secret can be on it.

use std::fmt::Write as _;

use tollgate_core::settings::{Accepted, Fault, Notes, nearest, parse_duration};
use yaml_rust2::scanner::ScanError;

use super::places::{Place, Places, Scalar};
use crate::settings::may_be_secret;

/// How many characters of a line are shown.
const SHOWN_MAX: usize = 120;
/// How many characters are shown before the column of a long line.
const BEFORE_MAX: usize = 60;
/// The longest word that is shown in place of another, in bytes. Secrets are longer, or hold more than letters.
const WORD_BYTES_MAX: usize = 12;
const HIDDEN: &str = "[redacted]";
/// Names of keys whose values are secrets, whoever reads them. A misspelt one is told by its likeness.
const SECRET_NAMES: &[&str] =
    &["authorization", "credentials", "headers", "key", "passphrase", "password", "secret", "subject_key", "token"];
/// The sections in which nearly every value may be a secret.
const SECRET_SECTIONS: &[&str] = &["privacy", "kafka.properties"];
/// Where the rules against abuse stand. They are a list of mappings, whose keys are not among those of the configuration itself.
const RULES: &str = "abuse.rules[].";
/// What of a rule is shown: numbers, durations and words that the rules' format knows. Whom a rule is about, and its texts, are not.
#[rustfmt::skip]
const SHOWN_OF_RULES: &[&str] = &[
    "id", "level", "mode", "suppress", "detection.signal", "detection.category", "detection.stage", "detection.provider",
    "detection.detector", "detection.code", "detection.tool", "correlation.type", "correlation.group-by", "correlation.timespan",
    "correlation.condition.gte", "correlation.condition.field", "correlation.over.signal", "correlation.min", "correlation.factor",
    "correlation.floor", "correlation.history", "correlation.warmup", "correlation.for", "escalation.steps", "escalation.decay",
];
/// The longest value of a rule that is shown, in bytes.
const RULE_VALUE_BYTES_MAX: usize = 32;

/// A configuration file, and what its keys may be.
pub(super) struct Source<'s> {
    pub(super) origin: &'s str,
    pub(super) text: &'s str,
    pub(super) notes: &'s Notes,
}

impl Source<'_> {
    /// Returns a fault, and where in the file it is. One that a variable brought names the variable instead.
    pub(super) fn fault(&self, fault: &Fault, places: &Places) -> String {
        let mut shown = fault.to_string();
        let is_from_variable = fault.key.ends_with(')');
        let Some((entry, is_own)) = places.nearest(&fault.key).filter(|_| !is_from_variable) else { return shown };
        // What is on another line than its key is shown by its key.
        let is_key = !is_own || fault.found == "an unknown key" || entry.value.line != entry.key.line;
        let place = if is_key { entry.key } else { entry.value };
        let line = self.text.lines().nth(place.line.saturating_sub(1)).and_then(|line| self.readable(line, place.line, places));
        self.write(&mut shown, place, line.as_deref());
        shown
    }

    /// Returns why a text is no YAML, and where. Of a line of which nothing is known, no more is shown than its key.
    pub(super) fn syntax(&self, error: &ScanError) -> String {
        let place = Place::from(error.marker());
        let mut shown = error.info().to_owned();
        let line = self.text.lines().nth(place.line.saturating_sub(1)).and_then(|line| self.plain(line));
        self.write(&mut shown, place, line.as_deref());
        shown
    }

    fn write(&self, shown: &mut String, Place { line: number, column }: Place, line: Option<&str>) {
        // Writing to a string does not fail.
        let _infallible = write!(shown, "\n  --> {}:{number}:{column}", self.origin);
        let Some(line) = line else { return };
        let from = if line.chars().count() > SHOWN_MAX { column.saturating_sub(BEFORE_MAX) } else { 0 };
        let plain = |character: char| if character.is_control() { ' ' } else { character };
        let part: String = line.chars().skip(from).take(SHOWN_MAX).map(plain).collect();
        let margin = number.to_string();
        let (blank, caret) = (" ".repeat(margin.len()), column.saturating_sub(1).saturating_sub(from).min(part.trim_end().chars().count()));
        let _infallible = write!(shown, "\n {blank} |\n {margin} | {}\n {blank} | {}^", part.trim_end(), " ".repeat(caret));
    }

    /// Returns a line up to the first value on it that may be a secret, without its comment; `None` if such a value goes on on this line.
    fn readable(&self, line: &str, number: usize, places: &Places) -> Option<String> {
        let mut cut = None;
        for scalar in places.scalars.iter().filter(|scalar| !self.is_harmless(scalar)) {
            if scalar.begin.line < number && scalar.end.line >= number && scalar.end > (Place { line: number, column: 1 }) {
                // The value before it may end where the next key begins, at the beginning of its line or behind white space.
                let is_before = line.chars().take(scalar.end.column.saturating_sub(1)).all(|c| c.is_whitespace() || c == '-');
                if scalar.end.line > number || !is_before {
                    return None;
                }
            }
            if scalar.begin.line == number {
                cut = Some(cut.map_or(scalar.begin.column, |cut: usize| cut.min(scalar.begin.column)));
            }
        }
        let shown: String = match cut {
            Some(column) => line.chars().take(column.saturating_sub(1)).chain(HIDDEN.chars()).collect(),
            None => without_comment(line).to_owned(),
        };
        Some(shown)
    }

    /// Returns whether a value is what a known key holds that is no secret, or a word under a key that does not sound like a secret: that
    /// word is often the mistake itself. Any other value may be anything.
    fn is_harmless(&self, scalar: &Scalar) -> bool {
        let mut known = String::new();
        let mut in_place = false;
        for character in scalar.path.chars() {
            in_place = (in_place || character == '[') && character != ']';
            if !in_place || character == '[' {
                known.push(character);
            }
        }
        if let Some(key) = known.strip_prefix(RULES) {
            return is_plain_in_rule(key, &scalar.text.0);
        }
        // An element of a list of texts is known by the list.
        let (key, is_element) = known.strip_suffix("[]").map_or((known.as_str(), false), |list| (list, true));
        let is_plain = |accepted: &Accepted| is_element == (*accepted == Accepted::Texts) && is_plain(accepted, &scalar.text.0);
        let is_word = is_yaml_word(&scalar.text.0) || (is_word(&scalar.text.0) && !sounds_secret(key));
        (is_word || self.notes.accepted.get(key).is_some_and(is_plain)) && !may_be_secret(key)
    }

    /// Returns a line with its key alone, unless the key is that of a number or a boolean, and its value is one. Where a text is no YAML,
    /// nobody can say which key a value belongs to.
    fn plain(&self, line: &str) -> Option<String> {
        let (before, value) = line.split_once(':').filter(|(before, _)| {
            let key = before.trim_start().trim_start_matches("- ");
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
        })?;
        let (key, value) = (before.trim_start().trim_start_matches("- "), without_comment(value));
        let is_plain_key = |(path, accepted): (&String, &Accepted)| {
            let is_typed = matches!(accepted, Accepted::Flag | Accepted::Whole(..));
            path.rsplit('.').next() == Some(key) && is_typed && is_plain(accepted, value.trim())
        };
        let is_shown = value.trim().is_empty() || self.notes.accepted.iter().any(is_plain_key);
        Some(if is_shown { format!("{before}:{value}") } else { format!("{before}: {HIDDEN}") })
    }
}

/// Returns whether a text is a word of YAML, which nobody takes for a secret.
fn is_yaml_word(text: &str) -> bool {
    matches!(text, "true" | "false" | "null")
}

/// Returns whether a text is a short word in small letters.
fn is_word(text: &str) -> bool {
    text.len() <= WORD_BYTES_MAX && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// Returns whether a name on the path of a key may be meant for that of a secret.
fn sounds_secret(path: &str) -> bool {
    let is_secret = |name: &str| may_be_secret(name) || nearest(name, SECRET_NAMES.iter().copied()).is_some();
    let names = path.split(['.', '[', ']']).flat_map(|name| std::iter::once(name).chain(name.split(['_', '-'])));
    SECRET_SECTIONS.iter().any(|section| path.starts_with(section)) || names.into_iter().any(is_secret)
}

/// Returns whether a text is what a key holds. User info and queries of URLs may be secrets in any text.
fn is_plain(accepted: &Accepted, text: &str) -> bool {
    match accepted {
        Accepted::Flag => matches!(text, "true" | "false"),
        Accepted::Duration => parse_duration(text).is_some(),
        Accepted::Whole(..) | Accepted::Fraction(_) | Accepted::Amount(_) => {
            text.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | '_'))
        }
        Accepted::Word(_) => is_word(text),
        Accepted::Text | Accepted::Texts => !text.contains("://") && !text.contains('@'),
        Accepted::Anything | Accepted::Section | Accepted::Sections | Accepted::Mapping => false,
    }
}

/// Returns whether a value of a rule against abuse can be shown. `detection` has keys with modifiers, such as `provider|startswith`.
fn is_plain_in_rule(key: &str, text: &str) -> bool {
    let key = key.strip_suffix("[]").unwrap_or(key);
    let key = key.split_once('|').map_or(key, |(key, _)| key);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    SHOWN_OF_RULES.contains(&key) && text.len() <= RULE_VALUE_BYTES_MAX && text.chars().all(is_plain)
}

/// Returns a line up to what may be a comment.
fn without_comment(line: &str) -> &str {
    let comment =
        line.match_indices('#').map(|(at, _)| at).find(|at| line.get(..*at).is_none_or(|before| before.ends_with(char::is_whitespace)));
    comment.and_then(|at| line.get(..at)).unwrap_or(line)
}
