//! What policy servers answer in a test: no server is asked.

use serde_json::{Map, Value, json};
use tollgate_core::decide::guardrail::{Answer, Dialect, ProviderError};
use tollgate_core::settings::Section;

/// The errors that an answer can be.
const ERRORS: &[(&str, ProviderError)] = &[
    ("not_asked", ProviderError::NotAsked),
    ("timed_out", ProviderError::TimedOut),
    ("connection", ProviderError::Connection),
    ("status", ProviderError::Status(500)),
    ("too_large", ProviderError::TooLarge),
    ("overloaded", ProviderError::Overloaded),
    ("circuit_open", ProviderError::CircuitOpen),
];

/// An answer as a test file gives it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StubAnswer {
    /// The server that it is the answer of; `None` is whichever is asked.
    pub(super) server: Option<String>,
    content: Content,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Decision(Map<String, Value>),
    Body(String),
    Error(ProviderError),
}

impl StubAnswer {
    /// Reads the answers of a step, in the order in which they are given.
    pub(super) fn read_all(step: &Section<'_>) -> Vec<Self> {
        step.sections("answers").into_iter().flatten().map(|answer| Self::read(&answer)).collect()
    }

    fn read(answer: &Section<'_>) -> Self {
        let is_written = ["allow", "error", "body"].map(|key| answer.is_written(key));
        if is_written.iter().filter(|is_written| **is_written).count() != 1 {
            answer.fault("allow", "none or several of `allow`, `error` and `body`", "write one of them");
        }
        let members: Vec<_> =
            ["reasons", "policy_id"].into_iter().filter_map(|key| Some((key.to_owned(), answer.value(key)?.clone()))).collect();
        let content = match (answer.word("error", ERRORS), answer.optional_string("body")) {
            (Some(error), _) => Content::Error(error),
            (None, Some(body)) => Content::Body(body),
            (None, None) => {
                let allow = answer.optional_bool("allow").unwrap_or_default();
                Content::Decision(members.iter().cloned().chain([("allow".to_owned(), allow.into())]).collect())
            }
        };
        if !matches!(content, Content::Decision(_)) && !members.is_empty() {
            answer.fault("reasons", "the parts of a decision", "write `allow` with them, or leave them out");
        }
        Self { server: answer.optional_string("server"), content }
    }

    /// Returns what the core is answered, as a server of this dialect puts it.
    pub(super) fn into_answer(self, dialect: Dialect) -> Answer {
        match self.content {
            Content::Error(error) => Err(error),
            Content::Body(body) => Ok(body.into_bytes()),
            Content::Decision(decision) => Ok(match dialect {
                Dialect::Tollgate => json!(decision).to_string().into_bytes(),
                Dialect::Opa => json!({"result": decision}).to_string().into_bytes(),
            }),
        }
    }
}
