//! The readers' paths as an outline of a body, for those who must leave alone what is read of it.

use tollgate_json::Value;

use super::ending::is_known_words;
use super::paths::{MESSAGES, Node, Paths, RESPONSES};
use super::readers::TOOL_SAFEGUARD;
use super::test::{ReasonText, text_of};
use super::{CallsAt, Ending, READERS, ReasonValue};

/// A place on the readers' paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OnPath {
    is_message: bool,
    at: usize,
}

impl OnPath {
    /// The top of a native body or an API error.
    pub(crate) const RESPONSE: Self = Self { is_message: false, at: 0 };
    /// The top of a LangChain message.
    pub(crate) const MESSAGE: Self = Self { is_message: true, at: 0 };

    fn paths(self) -> &'static Paths {
        if self.is_message { &MESSAGES } else { &RESPONSES }
    }

    fn node(self) -> Option<&'static Node> {
        self.paths().nodes.get(self.at)
    }

    fn to(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// Returns the place of a member, if it is on a path. Where a body begins anew, its own members are known too.
    pub(crate) fn member(self, name: &[u8]) -> Option<Self> {
        let node = self.node()?;
        let anew = || node.is_root.then(|| self.to(0).node()?.member(name)).flatten();
        node.member(name).or_else(anew).map(|at| self.to(at))
    }

    /// Returns the place of the items of an array. Those of a stream are bodies again.
    pub(crate) fn items(self) -> Option<Self> {
        let node = self.node()?;
        let stream = || (self.at == 0).then_some(0);
        node.items.or(node.last).or_else(stream).map(|at| self.to(at))
    }

    /// Returns whether a value here is a call that the host runs.
    pub(crate) fn is_call(self, value: Value<'_>) -> bool {
        self.node().is_some_and(|node| node.calls.iter().any(|place| place.at.counts(value)))
    }

    /// Returns whether a value here is a provider's verdict on single calls.
    pub(crate) fn has_flags(self) -> bool {
        self.node().is_some_and(|node| node.reasons.iter().any(|place| place.at.rule == TOOL_SAFEGUARD))
    }

    /// Returns whether a value here may say why the response ended, so that a number has to stay.
    pub(crate) fn says_why(self) -> bool {
        self.node().is_some_and(|node| !node.reasons.is_empty())
    }

    /// Returns whether a text here says why the response ended in nothing but known words.
    pub(crate) fn is_known(self, value: Value<'_>, beside: Value<'_>) -> bool {
        let Some((node, text)) = self.node().zip(value.as_text()) else { return false };
        node.reasons.iter().any(|place| match place.at.test.read(value, beside) {
            ReasonText::Stop(found) => {
                let is_shown = matches!(found.value, ReasonValue::Text(shown) if shown.as_bytes() == text.as_bytes());
                is_shown || place.at.test.is_ending() && text_of(value).is_some_and(|text| is_known_words(&text))
            }
            ReasonText::Stands(_, ending) => ending != Ending::Unknown,
            ReasonText::Nothing => false,
        })
    }
}

/// Returns whether a word is the type of a call that some provider has.
pub(crate) fn is_call_type(word: &str) -> bool {
    all_calls().flat_map(|calls| calls.types).any(|(known, _)| *known == word)
}

/// Returns whether a member of a call holds its id or its tool's name.
pub(crate) fn is_call_name(member: &str) -> bool {
    all_calls().flat_map(|calls| calls.id.iter().chain(calls.name)).any(|path| path.rsplit('.').next() == Some(member))
}

/// Returns whether a member of a call holds the object with the tool's name.
pub(crate) fn is_function(member: &str) -> bool {
    all_calls().flat_map(|calls| calls.name).any(|path| path.split_once('.').is_some_and(|(first, _)| first == member))
}

/// Returns whether a member of a call holds its arguments as a JSON text.
pub(crate) fn is_arguments(member: &str) -> bool {
    all_calls().any(|calls| calls.arguments.last() == Some(&member))
}

fn all_calls() -> impl Iterator<Item = &'static CallsAt> {
    READERS.iter().flat_map(|reader| reader.calls)
}
