//! Text generation of Hugging Face and watsonx, which have no word for a safety stop.

use super::super::{Reader, ReasonAt};

pub(super) static READER: Reader = Reader {
    name: "text_generation",
    providers: "Hugging Face TGI, watsonx",
    reasons: &[
        ReasonAt::ending("details.finish_reason", "finish_reason", "openai_compatible_content_filter"),
        ReasonAt::ending("results[].stop_reason", "stop_reason", "openai_compatible_content_filter"),
    ],
    texts: &["generated_text", "results[].generated_text"],
    ..Reader::BLANK
};
