//! Ollama's own API, which has no word for a safety stop.

use super::super::{Reader, ReasonAt};

pub(super) static READER: Reader = Reader {
    name: "ollama",
    providers: "Ollama",
    reasons: &[ReasonAt::ending("done_reason", "done_reason", "openai_compatible_content_filter")],
    ..Reader::BLANK
};
