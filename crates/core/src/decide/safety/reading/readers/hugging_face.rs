//! Text generation of Hugging Face and watsonx, which have no word for a safety stop.

use super::super::{Reader, ReasonAt, Test};

pub(super) static READER: Reader = Reader {
    name: "text_generation",
    providers: "Hugging Face TGI, watsonx",
    reasons: &[
        ReasonAt { path: "details.finish_reason", field: "finish_reason", rule: "openai_compatible_content_filter", test: Test::Ending },
        ReasonAt { path: "results[].stop_reason", field: "stop_reason", rule: "openai_compatible_content_filter", test: Test::Ending },
    ],
    texts: &["generated_text", "results[].generated_text"],
    ..Reader::BLANK
};
