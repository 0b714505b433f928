//! Sets of values that mean a safety stop, and their categories.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::codes::codes;
use crate::settings::Section;

codes! {
    /// The kind of safety stop that a value stands for.
    Category {
        /// A content filter that gives no more precise reason.
        Safety = "safety",
        /// Recitation of protected text.
        Recitation = "recitation",
        /// Prohibited content.
        Prohibited = "prohibited",
        /// A word on a block list.
        Blocklist = "blocklist",
        /// Personal data.
        Pii = "pii",
        /// A guardrail of the platform.
        Guardrail = "guardrail",
        /// The model's own refusal.
        Refusal = "refusal",
        /// An attempt to break out of what the model may do.
        Jailbreak = "jailbreak",
        /// A verdict on single calls.
        ToolFlagged = "tool_flagged",
    }
}

impl Category {
    /// Returns the category of a value. An unknown value was configured as a safety stop, so it counts as [`Category::Safety`].
    #[must_use]
    pub fn of(value: &str) -> Self {
        match value.to_lowercase().as_str() {
            "refusal" => Self::Refusal,
            "recitation" | "image_recitation" => Self::Recitation,
            "prohibited_content" | "image_prohibited_content" => Self::Prohibited,
            "blocklist" => Self::Blocklist,
            "spii" => Self::Pii,
            "guardrail_intervened" | "model_armor" => Self::Guardrail,
            _ => Self::Safety,
        }
    }
}

impl Serialize for Category {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// How many copies of a value verdicts repeat. Of more they show one.
const COPIES_SHOWN_MAX: usize = 4;

/// Values that are compared without regard to case and without trimming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasonSet {
    lower: Vec<String>,
}

impl ReasonSet {
    /// Returns a set of these values.
    pub fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        Self { lower: values.into_iter().map(|value| value.as_ref().to_lowercase()).collect() }
    }

    /// Reads the values that a detector's configuration gives under `key`, or else its defaults.
    pub fn read(config: &Section<'_>, key: &'static str, defaults: &[&str]) -> Vec<String> {
        let Some(values) = config.strings(key) else { return defaults.iter().map(|value| (*value).to_owned()).collect() };
        if config.value(key).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            config.fault(key, "an empty list", "omit it for the built-in values");
        }
        for (index, _) in values.iter().enumerate().filter(|(_, value)| value.is_empty() || value.trim() != *value || value.contains('*')) {
            const FIX: &str = "write the whole word as the provider sends it, without blanks around it and without *";
            config.fault(&format!("{key}[{index}]"), "a value that no response ends with", FIX);
        }
        values
    }

    /// Returns the value of the set, in lower case, that a value counts as. Merging stream chunks repeats a value (`STOPSTOP`), so two or
    /// more copies of a value count as that value.
    #[must_use]
    pub fn find(&self, value: &str) -> Option<&str> {
        let value = value.to_lowercase();
        self.lower.iter().map(String::as_str).find(|known| is_repetition(&value, known))
    }

    /// Returns the category of a value if it is in the set.
    #[must_use]
    pub fn category(&self, value: &str) -> Option<Category> {
        self.find(value).map(Category::of)
    }
}

/// Returns whether a value is a known word, or several copies of it.
pub(super) fn is_repetition(value: &str, known: &str) -> bool {
    if known.is_empty() {
        return value.is_empty();
    }
    // Most words are told apart by their beginning, which costs no division.
    value.starts_with(known)
        && value.len().is_multiple_of(known.len())
        && value.as_bytes().chunks(known.len()).all(|chunk| chunk == known.as_bytes())
}

/// Returns whether a value of copies of a word is shown as it is. Of more copies the word alone is shown.
pub(super) fn has_few_copies(value: &str, known: &str) -> bool {
    value.len() <= COPIES_SHOWN_MAX * known.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_match_in_any_case_and_repeated_but_untrimmed() {
        let set = ReasonSet::new(["content_filter", "SAFETY", "SPII"]);
        assert_eq!(set.category("Content_Filter"), Some(Category::Safety));
        assert_eq!(set.category("content_filtercontent_filter"), Some(Category::Safety));
        assert_eq!(set.category("spiiSPIIspii"), Some(Category::Pii));
        for value in ["content_filter ", "content", "stop", "STOPSTOP", "", "SAFETYx", "content_filterSAFETY"] {
            assert_eq!(set.category(value), None, "{value}");
        }
    }
}
