//! What follows where a response is in doubt.

use serde::Serialize;

use super::reading::Scan;
use super::{ReasonSet, TOOL_CALLS_UNRELIABLE, UNRECOGNIZED_RESPONSE};
use crate::codes::codes;
use crate::settings::Section;

codes! {
    /// What follows where a response is in doubt.
    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    OnDoubt {
        /// The verdict says it, and allows.
        Allow = "allow",
        /// The verdict warns.
        Warn = "warn",
        /// The response is suppressed, and its calls must not run.
        Suppress = "suppress",
    }
}

/// What is in doubt of a response, and what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// No reader knows the body.
    Unrecognized(OnDoubt),
    /// Its calls may be incomplete.
    Unreliable(OnDoubt),
}

impl Doubt {
    /// Returns what follows.
    #[must_use]
    pub fn action(self) -> OnDoubt {
        let (Self::Unrecognized(action) | Self::Unreliable(action)) = self;
        action
    }

    /// Returns the code of the verdict that says it.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Unrecognized(_) => UNRECOGNIZED_RESPONSE,
            Self::Unreliable(_) => TOOL_CALLS_UNRELIABLE,
        }
    }

    /// Returns the same as a sentence.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::Unrecognized(_) => "The response has a shape that is not known, so nothing says whether it was cut off.",
            Self::Unreliable(_) => "The response was cut off, or a call's arguments cannot be read, so its calls may be incomplete.",
        }
    }
}

/// The keys of `safety_finish_reason` that concern responses in doubt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ResponseSettings {
    /// What follows on a body that no reader knows; `None` if it is not asked.
    pub on_unrecognized: Option<OnDoubt>,
    /// What follows where calls may be incomplete; `None` if it is not asked.
    pub on_unreliable: Option<OnDoubt>,
    /// The only reasons after which calls may run; `None` for all that are no stops.
    pub only_on: Option<Vec<String>>,
}

impl ResponseSettings {
    /// Reads the keys of the section. `is_native` says whether the native detector is on: without it a response is as DeerFlow has it.
    pub(crate) fn read(section: &Section<'_>, is_native: bool) -> Self {
        let words = OnDoubt::ALL.map(|action| (action.as_str(), action));
        let on_doubt = |key| section.word(key, &words).or(is_native.then_some(OnDoubt::Warn));
        let only_on = section.strings("only_on");
        if only_on.is_some() && section.word("on_unrecognized", &words).is_some_and(|action| action != OnDoubt::Suppress) {
            section.fault(
                "on_unrecognized",
                "an action beside `only_on`, which suppresses such a response",
                "leave it out, or write suppress",
            );
        }
        if only_on.as_ref().is_some_and(Vec::is_empty) {
            section.fault(
                "only_on",
                "an empty list, after which no call could run",
                "write [stop, tool_calls, end_turn, tool_use], or null",
            );
        }
        Self { on_unrecognized: on_doubt("on_unrecognized"), on_unreliable: on_doubt("on_unreliable"), only_on }
    }

    /// Returns whether bodies have to be read in every shape for it.
    #[must_use]
    pub fn reads_every_shape(&self) -> bool {
        *self != Self::default()
    }

    /// Returns what is in doubt of a response that was not stopped.
    pub(super) fn doubt(&self, scan: &Scan<'_>) -> Option<Doubt> {
        if !scan.is_recognized {
            let action = if self.only_on.is_some() { Some(OnDoubt::Suppress) } else { self.on_unrecognized };
            return action.map(Doubt::Unrecognized);
        }
        let is_unknown = self.only_on.as_ref().is_some_and(|words| !scan.ended_in(&ReasonSet::new(words)));
        if scan.has_calls && is_unknown {
            return Some(Doubt::Unreliable(OnDoubt::Suppress));
        }
        self.on_unreliable.filter(|_| scan.has_calls && scan.is_cut).map(Doubt::Unreliable)
    }
}
