//! What the value at a place has to be to mean that a safety system stopped the response.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use tollgate_json::{Text, Value};

use super::Ending;
use crate::codes::codes;
use crate::decide::safety::Category;

codes! {
    /// Whether a safety system stopped what the user sent, or what the model wrote.
    Stage {
        /// The input.
        Input = "input",
        /// The output.
        Output = "output",
    }
}

impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A value that says why a response ended, as the provider writes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ReasonValue {
    /// A text.
    Text(String),
    /// A whole number, such as an error code.
    Number(i64),
    /// A flag.
    Flag(bool),
}

impl std::fmt::Display for ReasonValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
        }
    }
}

/// What a test has found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The kind of safety stop.
    pub category: Category,
    /// What was stopped, where the provider says it.
    pub stage: Option<Stage>,
    /// The value to show.
    pub value: ReasonValue,
    /// The ids of the calls that the provider flagged, if it flagged some calls and let the others be.
    pub flagged: Option<Vec<String>>,
}

impl Found {
    /// Returns a finding that shows a value.
    pub(super) fn of(value: ReasonValue, category: Category, stage: Option<Stage>) -> Self {
        Self { category, stage, value, flagged: None }
    }

    /// Returns a finding that shows a text.
    pub(super) fn text(value: impl Into<String>, category: Category, stage: Option<Stage>) -> Self {
        Self::of(ReasonValue::Text(value.into()), category, stage)
    }
}

/// What a value says at its place.
#[derive(Debug)]
pub(super) enum ReasonText<'d> {
    /// A safety system stopped the response.
    Stop(Found),
    /// This word says how the response stands, and means no stop.
    Stands(Cow<'d, str>, Ending),
    /// Nothing.
    Nothing,
}

/// What the value at a place has to be.
#[derive(Debug)]
pub enum Test {
    /// A word for how the response stands. Words that mean a safety stop count, whoever writes them. Where a provider numbers its words, the
    /// word of each number is here, from 0 on.
    Ending(&'static [&'static str]),
    /// The same word, where the object around it has no value under this name: others write a stop string of the user beside it.
    EndingWithout(&'static str),
    /// An object, or `true`: the response ended as it should, in this word.
    Complete(&'static str),
    /// One of these texts, exactly, with what they mean.
    Words(&'static [(&'static str, Category, Option<Stage>)]),
    /// One of these numbers, as a number or as a text.
    Numbers(&'static [(i64, Category, Option<Stage>)]),
    /// `true`.
    Flag(Category, Option<Stage>),
    /// A text that is not empty. It quotes the model, so that the word here is shown instead.
    Text(&'static str, Category),
    /// What a function finds in the value and the object around it. The text says what that is.
    Custom(&'static str, fn(Value<'_>, Value<'_>) -> Option<Found>),
}

impl Test {
    /// Returns whether it reads a word for how the response stands.
    #[must_use]
    pub(super) fn is_ending(&self) -> bool {
        matches!(self, Self::Ending(_) | Self::EndingWithout(_) | Self::Complete(_))
    }

    /// Returns what a value says, with the object around it.
    pub(super) fn read<'d>(&self, value: Value<'d>, beside: Value<'d>) -> ReasonText<'d> {
        let numbered = match self {
            Self::Ending(numbered) => *numbered,
            Self::EndingWithout(other) if beside.get(other).is_none_or(|other| other.is_null()) => &[],
            Self::Complete(word) => {
                let is_there = value.is_object() || value.as_bool() == Some(true);
                return if is_there { ReasonText::Stands(Cow::Borrowed(word), Ending::Complete) } else { ReasonText::Nothing };
            }
            _ => return self.find(value, beside).map_or(ReasonText::Nothing, ReasonText::Stop),
        };
        let number = if numbered.is_empty() { None } else { whole(value) };
        let word_of = |number| usize::try_from(number).ok().and_then(|at| numbered.get(at)).copied().unwrap_or("unknown");
        let Some(word) = number.map(word_of).map(Cow::Borrowed).or_else(|| text_of(value)) else { return ReasonText::Nothing };
        match Ending::of(&word) {
            Ending::Stop { category, shown } => {
                let shown = number.map_or(ReasonValue::Text(shown), |number| number_as_written(number, value));
                ReasonText::Stop(Found::of(shown, refined(category, beside), Some(Stage::Output)))
            }
            ending => ReasonText::Stands(word, ending),
        }
    }

    /// Returns the stop that a test of anything but a word for the end finds.
    fn find(&self, value: Value<'_>, beside: Value<'_>) -> Option<Found> {
        match self {
            Self::Ending(_) | Self::EndingWithout(_) | Self::Complete(_) => None,
            Self::Words(words) => {
                let (word, category, stage) = words.iter().find(|(word, ..)| value.is_text(word))?;
                Some(Found::text(*word, refined(*category, beside), *stage))
            }
            Self::Numbers(numbers) => {
                let number = whole(value)?;
                let (_, category, stage) = numbers.iter().find(|(known, ..)| *known == number)?;
                Some(Found::of(number_as_written(number, value), *category, *stage))
            }
            Self::Flag(category, stage) => (value.as_bool() == Some(true)).then(|| Found::of(ReasonValue::Flag(true), *category, *stage)),
            Self::Text(shown, category) => {
                value.as_text().filter(|text| text.source_len() > 0)?;
                Some(Found::text(*shown, *category, Some(Stage::Output)))
            }
            Self::Custom(_, find) => find(value, beside),
        }
    }
}

/// Returns a text; `None` for anything else, and for a text with half a surrogate pair.
pub(super) fn text_of<'d>(value: Value<'d>) -> Option<Cow<'d, str>> {
    value.as_text().and_then(Text::into_str)
}

/// Returns a whole number that is written as a number or as a text.
pub(super) fn whole(value: Value<'_>) -> Option<i64> {
    std::str::from_utf8(value.source()).ok()?.parse().ok()
}

/// Returns a number that was read in a value, as a text if it is written so.
fn number_as_written(number: i64, value: Value<'_>) -> ReasonValue {
    if value.as_text().is_some() { ReasonValue::Text(number.to_string()) } else { ReasonValue::Number(number) }
}

/// Returns the value at a path of members within an object. A path of members alone is meant, without `[]`.
pub(super) fn dig<'d>(value: Value<'d>, path: &str) -> Option<Value<'d>> {
    path.split('.').try_fold(value, |value, member| value.get(member))
}

/// Returns the category that what stands beside a stop says more precisely: the reason that a gateway got from the provider, or the filter
/// of Azure that was hit.
pub(crate) fn refined(category: Category, beside: Value<'_>) -> Category {
    if category != Category::Safety || !beside.is_object() {
        return category;
    }
    for path in ["native_finish_reason", "provider_specific_fields.native_finish_reason"] {
        if let Some(Ending::Stop { category, .. }) = dig(beside, path).and_then(text_of).map(|text| Ending::of(&text)) {
            return category;
        }
    }
    let is_filtered = |filters: Value<'_>, name: &str| {
        dig(filters, name).and_then(|filter| filter.get("filtered")).and_then(|flag| flag.as_bool()) == Some(true)
    };
    for filters in ["content_filter_results", "innererror.content_filter_result"].into_iter().filter_map(|path| dig(beside, path)) {
        if is_filtered(filters, "jailbreak") {
            return Category::Jailbreak;
        }
        if is_filtered(filters, "protected_material_text") || is_filtered(filters, "protected_material_code") {
            return Category::Recitation;
        }
    }
    category
}
