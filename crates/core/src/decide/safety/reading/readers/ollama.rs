//! Ollama's own API, which has no word for a safety stop.

use super::super::{Reader, ReasonAt, Test};

pub(super) static READER: Reader = Reader {
    name: "ollama",
    providers: "Ollama",
    reasons: &[ReasonAt { path: "done_reason", field: "done_reason", rule: "openai_compatible_content_filter", test: Test::Ending }],
    ..Reader::BLANK
};
